// SPDX-License-Identifier: Apache-2.0

package x86_64_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	x86 "github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records"
)

// base is where the kernel is linked. A variable, since 2 GiB from it wrap.
var base records.Addr = 0xffffffff81000000

// TestEncodings compares with bytes worked out from the SDM's tables.
func TestEncodings(t *testing.T) {
	call := func(at, to records.Addr) isa.Text { text, _ := x86.Call(at, to); return text }
	jump := func(at, to records.Addr) isa.Text { text, _ := x86.Jump(at, to); return text }
	for _, c := range []struct {
		name string
		got  isa.Text
		n    int
		want string
	}{
		{"nop5", x86.Arch.Disabled(isa.Site{}), 5, "0f 1f 44 00 00"},
		{"nop2", x86.Nop2, 2, "66 90"},
		{"int3", x86.Arch.Breakpoint(), 1, "cc"},
		{"call of the next instruction", call(base, base+5), 5, "e8 00 00 00 00"},
		{"call of itself", call(base, base), 5, "e8 fb ff ff ff"},
		{"call forward", call(base, base+0x12345678+5), 5, "e8 78 56 34 12"},
		{"call across zero", call(0, ^records.Addr(0)), 5, "e8 fa ff ff ff"},
		{"jmp back", jump(base, base-0x100), 5, "e9 fb fe ff ff"},
	} {
		if got := c.got.Format(c.n); got != c.want || c.got > isa.Mask(c.n) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		text isa.Text
		want isa.Insn
	}{
		{isa.TextOf(0x0F, 0x1F, 0x44, 0, 0), isa.Insn{Kind: isa.Nop, Len: 5}},
		{isa.TextOf(0x66, 0x90), isa.Insn{Kind: isa.Nop, Len: 2}},
		{isa.TextOf(0xCC, 0x1F, 0x44, 0, 0), isa.Insn{Kind: isa.Breakpoint, Len: 1}},
		{isa.TextOf(0xE8, 0, 0, 0, 0x80), isa.Insn{Kind: isa.Call, Len: 5, Target: base + 5 - 1<<31}},
		{isa.TextOf(0xE9, 0xFF, 0xFF, 0xFF, 0x7F), isa.Insn{Kind: isa.Jump, Len: 5, Target: base + 4 + 1<<31}},
		{isa.TextOf(0xEB, 0xFE), isa.Insn{Kind: isa.Jump, Len: 2, Target: base}},
		// Half-written sites: a new first byte before an old tail and the reverse.
		{isa.TextOf(0xE8, 0x1F, 0x44, 0, 0), isa.Insn{Kind: isa.Call, Len: 5, Target: base + 5 + 0x441F}},
		{isa.TextOf(0x0F, 0x10, 0x20, 0x30, 0x40), isa.Insn{}},
		{isa.TextOf(0x0F, 0x1F, 0x44, 0, 1), isa.Insn{}},
		{isa.TextOf(0xC3), isa.Insn{Kind: isa.Return, Len: 1}},
		{isa.TextOf(0x90), isa.Insn{Kind: isa.Nop, Len: 1}},
		{isa.TextOf(0x74, 0x80), isa.Insn{Kind: isa.Jump, Len: 2, Target: base + 2 - 128}},
		{isa.TextOf(0x0F, 0x84, 0, 0, 0, 0x80), isa.Insn{Kind: isa.Jump, Len: 6, Target: base + 6 - 1<<31}},
	} {
		if got := x86.Arch.Decode(base, c.text, 0); got != c.want {
			t.Errorf("% s: %+v, want %+v", c.text.Format(5), got, c.want)
		}
	}
}

func TestSiteIsTheRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := anyAddr(t, "rec")
		layout := rapid.SampledFrom([]isa.Layout{isa.Word, isa.Pair}).Draw(t, "layout")
		s, err := x86.Arch.Site(rec, layout)
		if want := (isa.Site{Addr: rec, Len: 5}); err != nil || s != want {
			t.Errorf("%+v, %v, want %+v", s, err, want)
		}
	})
}

func TestReachEndsWithRel32(t *testing.T) {
	for _, c := range []struct {
		off   int64 // from the site
		there bool
	}{
		{math.MaxInt32 + 5, true},
		{math.MaxInt32 + 6, false},
		{math.MinInt32 + 5, true},
		{math.MinInt32 + 4, false},
	} {
		s := isa.Site{Addr: base, Len: 5}
		// Neither the entry nor a PLT slot helps: nothing tells them the target.
		d := isa.Destination{Target: base + records.Addr(c.off), Entry: base + 64, PLT: base + 128}
		text, via, err := x86.Arch.Enabled(s, d)
		if c.there {
			want := isa.Insn{Kind: isa.Call, Len: 5, Target: d.Target}
			if got := x86.Arch.Decode(base, text, 0); err != nil || via != isa.Direct || got != want {
				t.Errorf("%+d: %+v, %v, %v", c.off, got, via, err)
			}
			continue
		}
		var reach *isa.ReachError
		if !errors.As(err, &reach) || *reach != (isa.ReachError{Arch: "x86_64", Site: base, To: d.Target, Reach: 2 << 30}) {
			t.Errorf("%+d: %v", c.off, err)
		}
	}
}

func TestEnabledCallsTargetOrFails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := x86.Arch.Site(anyAddr(t, "rec"), isa.Word)
		off := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3<<30, 3<<30)).Draw(t, "off")
		d := isa.Destination{Target: s.Addr + records.Addr(off)}
		text, _, err := x86.Arch.Enabled(s, d)
		reachable := off >= math.MinInt32+5 && off <= math.MaxInt32+5
		if reachable != (err == nil) {
			t.Fatalf("%+d: %v", off, err)
		}
		if want := (isa.Insn{Kind: isa.Call, Len: 5, Target: d.Target}); reachable && disassembled(s.Addr, text) != want {
			t.Errorf("%+d: %+v", off, disassembled(s.Addr, text))
		}
	})
}

func TestTraits(t *testing.T) {
	want := isa.Traits{
		Name: "x86_64", Layout: "plain", FetchLen: 5, BreakpointLen: 1, Breakpoint: "int3", RegsEntry: true, OpsTrampolines: true, SingleDirectOps: true, VerifyFirst: true,
		Resync:    "sync_core",
		TrapSyncs: true, InterruptSyncs: true,
		InterruptRow: "CAL", InterruptName: "Function call interrupts",
		StopRow: "RES", StopName: "Rescheduling interrupts",
	}
	if got := x86.Arch.Traits(); got != want {
		t.Errorf("%+v", got)
	}
	if s := x86.Arch.Scratch(isa.Site{Addr: base, Len: 5}, base+64); s != 0 {
		t.Errorf("scratch %#x", s)
	}
}

func TestOnlyBytesAreAtomic(t *testing.T) {
	for at := base; at < base+16; at++ {
		if g := x86.Arch.Grain(at); g != 1 {
			t.Errorf("grain %d at %s", g, at)
		}
		for n := 1; n <= 8; n++ {
			if got := x86.Arch.AtomicStore(at, n); got != (n == 1) {
				t.Errorf("AtomicStore(%s, %d) = %v", at, n, got)
			}
		}
	}
}

// TestLengths: sites of each length that the text poker knows, when disabled and
// enabled; worked out by hand.
func TestLengths(t *testing.T) {
	near := isa.Destination{Target: base + 0x22}
	for _, c := range []struct {
		n        int
		to       isa.Destination
		off, on  string
		kind     isa.InsnKind
		disabled isa.InsnKind
	}{
		{1, near, "90", "c3", isa.Return, isa.Nop},
		{2, near, "66 90", "eb 20", isa.Jump, isa.Nop},
		{5, near, "0f 1f 44 00 00", "e8 1d 00 00 00", isa.Call, isa.Nop},
		{5, isa.Destination{Target: base + 0x22, Jump: true}, "0f 1f 44 00 00", "e9 1d 00 00 00", isa.Jump, isa.Nop},
		{6, near, "0f 84 00 00 00 00", "0f 84 1c 00 00 00", isa.Jump, isa.Jump},
	} {
		a, ok := x86.Sized(c.n)
		if !ok || a.Traits().FetchLen != c.n {
			t.Fatalf("%d bytes: %v, %+v", c.n, ok, a)
		}
		s, err := a.Site(base, isa.Word)
		if err != nil || int(s.Len) != c.n {
			t.Fatalf("%d bytes: %+v, %v", c.n, s, err)
		}
		on, _, err := a.Enabled(s, c.to)
		if err != nil || on.Format(c.n) != c.on || a.Disabled(s).Format(c.n) != c.off {
			t.Errorf("%d bytes: % s and % s, %v; want %s and %s", c.n, a.Disabled(s).Format(c.n), on.Format(c.n), err, c.off,
				c.on)
		}
		if got := a.Decode(base, on, 0); got.Kind != c.kind || c.n > 1 && got.Target != c.to.Target {
			t.Errorf("%d bytes: enabled is %+v", c.n, got)
		}
		if got := a.Decode(base, a.Disabled(s), 0); got.Kind != c.disabled || c.n == 6 && got.Target != base+6 {
			t.Errorf("%d bytes: disabled is %+v", c.n, got)
		}
	}
	for _, n := range []int{0, 3, 4, 7} {
		if _, ok := x86.Sized(n); ok {
			t.Errorf("there are sites of %d bytes", n)
		}
	}
	two, _ := x86.Sized(2)
	for off, fits := range map[int64]bool{-126: true, -127: false, 129: true, 130: false} {
		if _, _, err := two.Enabled(isa.Site{Addr: base, Len: 2},
			isa.Destination{Target: base + records.Addr(off)}); (err == nil) != fits {
			t.Errorf("2 bytes to %+d: %v", off, err)
		}
	}
	if a, ok := x86.Sized(5); !ok || a != x86.Arch {
		t.Error("five bytes are not the usual ones")
	}
}

// TestRegion: a region of a program's own code has 1 to 8 bytes, fetched one by one.
func TestRegion(t *testing.T) {
	for n := -1; n <= 9; n++ {
		a, ok := x86.Region(n)
		if ok != (n >= 1 && n <= 8) {
			t.Errorf("%d bytes: %v", n, ok)
		}
		if ok && a.Traits().FetchLen != n {
			t.Errorf("%d bytes: %d are fetched", n, a.Traits().FetchLen)
		}
	}
}
