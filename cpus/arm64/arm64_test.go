// SPDX-License-Identifier: Apache-2.0

package arm64_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// base is the record of a function at ...010008: the first of Debian's 6.12.
const base records.Addr = 0xffff80008001000c

// TestEncodings compares with words worked out from the Arm ARM's C6.2.
func TestEncodings(t *testing.T) {
	call := func(at, to records.Addr) isa.Text { text, _ := arm64.Call(at, to); return text }
	jump := func(at, to records.Addr) isa.Text { text, _ := arm64.Jump(at, to); return text }
	for _, c := range []struct {
		name      string
		got, want isa.Text
	}{
		{"NOP", arm64.Arch.Disabled(isa.Site{}), 0xD503201F},
		{"BRK #0", arm64.Arch.Breakpoint(), 0xD4200000},
		{"BL +4", call(base, base+4), 0x94000001},
		{"BL itself", call(base, base), 0x94000000},
		{"BL -4", call(base, base-4), 0x97FFFFFF},
		{"BL farthest forward", call(base, base+128<<20-4), 0x95FFFFFF},
		{"BL farthest back", call(base, base-128<<20), 0x96000000},
		{"B +8", jump(base, base+8), 0x14000002},
		{"B across zero", jump(0, ^records.Addr(3)), 0x17FFFFFF},
	} {
		if c.got != c.want {
			t.Errorf("%s: %08X, want %08X", c.name, uint64(c.got), uint64(c.want))
		}
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		text isa.Text
		want isa.Insn
	}{
		{0xD503201F, isa.Insn{Kind: isa.Nop, Len: 4}},
		{0x94000001, isa.Insn{Kind: isa.Call, Len: 4, Target: base + 4}},
		{0x95FFFFFF, isa.Insn{Kind: isa.Call, Len: 4, Target: base + 128<<20 - 4}},
		{0x96000000, isa.Insn{Kind: isa.Call, Len: 4, Target: base - 128<<20}},
		{0x17FFFFFF, isa.Insn{Kind: isa.Jump, Len: 4, Target: base - 4}},
		{0xD4200000, isa.Insn{Kind: isa.Breakpoint, Len: 4}},
		{0xD4200080, isa.Insn{Kind: isa.Breakpoint, Len: 4}}, // BRK #4, a kprobe
		{0xAA1E03E9, isa.Insn{}},
		{0xD5033FDF, isa.Insn{}},
		{0, isa.Insn{}},
	} {
		if got := arm64.Arch.Decode(base, c.text, 0); got != c.want {
			t.Errorf("%08X: %+v, want %+v", uint32(c.text), got, c.want)
		}
	}
}

// TestSite follows ftrace_call_adjust: addr is what the compiler lists, the
// record lies 12 or (BTI) 16 behind it, and the kernel skips addr%8 != 0.
func TestSite(t *testing.T) {
	const addr = base - 12
	site := func(rec records.Addr) isa.Site { return isa.Site{Addr: rec, Literal: addr, Len: 4} }
	for _, c := range []struct {
		name                string
		rec                 records.Addr
		callOps, bti, plain string // the error's What, "" where the record is taken
	}{
		{"aligned", addr + 12, "", "", ""},
		{"aligned, BTI C", addr + 16, "literal", "", ""},
		{"between instructions", addr + 14, "site", "site", "site"},
		{"odd", addr + 13, "site", "site", "site"},
	} {
		for arch, what := range map[isa.Arch]string{arm64.Arch: c.callOps, arm64.BTI: c.bti, arm64.Plain: c.plain} {
			s, err := arch.Site(c.rec, isa.Word)
			if what == "" {
				want := site(c.rec)
				if arch == arm64.Plain {
					want.Literal = 0
				}
				if err != nil || s != want {
					t.Errorf("%s: %+v, %v", c.name, s, err)
				}
				continue
			}
			align := map[string]int{"site": 4, "literal": 8}[what]
			var mis *isa.MisalignedError
			if !errors.As(err, &mis) || *mis != (isa.MisalignedError{Arch: "arm64", Record: c.rec, What: what, Align: align}) {
				t.Errorf("%s: %v, want a misaligned %s", c.name, err, what)
			}
		}
	}
}

// TestLiteralAsTrampolineFindsIt compares with what ftrace_caller computes
// from LR, which the BL leaves 4 behind the record.
func TestLiteralAsTrampolineFindsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := anyAddr(t, "rec")
		for _, arch := range []isa.Arch{arm64.Arch, arm64.BTI} {
			s, err := arch.Site(rec, isa.Word)
			if err != nil {
				if arch == arm64.BTI || rec%8 == 4 {
					t.Errorf("%s: %v", rec, err)
				}
				continue
			}
			lr := rec + 4
			if s.Literal != lr&^7-16 || !arch.AtomicStore(s.Literal, 8) || !arch.AtomicStore(s.Addr, 4) {
				t.Errorf("%s: %+v", rec, s)
			}
		}
	})
}

func TestEnabledTakesTheFirstWayInReach(t *testing.T) {
	const near, far = 0x1000, 128 << 20
	for _, c := range []struct {
		name               string
		target, entry, plt int64 // from the site; plt 0: none
		via                isa.Via
		to                 int64
		fails              bool
	}{
		{"all near", near, 2 * near, 3 * near, isa.Direct, near, false},
		{"target last forward", far - 4, near, near, isa.Direct, far - 4, false},
		{"target beyond", far, near, 2 * near, isa.ThroughEntry, near, false},
		{"target last back", -far, near, near, isa.Direct, -far, false},
		{"target beyond back", -far - 4, near, 0, isa.ThroughEntry, near, false},
		{"target between words", near + 2, near, 0, isa.ThroughEntry, near, false},
		{"entry last", far, far - 4, near, isa.ThroughEntry, far - 4, false},
		{"entry beyond", far, far, near, isa.ThroughPLT, near, false},
		{"entry beyond back", -far - 4, -far - 4, -far, isa.ThroughPLT, -far, false},
		{"no PLT", far, far, 0, 0, 0, true},
		{"PLT beyond", far, far, far, 0, 0, true},
	} {
		at := func(off int64) records.Addr { return base + records.Addr(off) }
		d := isa.Destination{Target: at(c.target), Entry: at(c.entry)}
		if c.plt != 0 {
			d.PLT = at(c.plt)
		}
		text, via, err := arm64.Arch.Enabled(isa.Site{Addr: base, Len: 4}, d)
		if c.fails {
			var reach *isa.ReachError
			if !errors.As(err, &reach) || *reach != (isa.ReachError{Arch: "arm64", Site: base, To: d.Target, Reach: 128 << 20}) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		want := isa.Insn{Kind: isa.Call, Len: 4, Target: at(c.to)}
		if got := arm64.Arch.Decode(base, text, 0); err != nil || via != c.via || got != want {
			t.Errorf("%s: %+v by way %d, %v, want %+v by way %d", c.name, got, via, err, want, c.via)
		}
	}
}

// TestNoSlotAtZero: an absent PLT slot is not one at address 0, though that be
// in reach.
func TestNoSlotAtZero(t *testing.T) {
	d := isa.Destination{Target: 1 << 40, Entry: 1 << 40}
	if text, via, err := arm64.Arch.Enabled(isa.Site{Addr: 0x100c, Len: 4}, d); err == nil {
		t.Errorf("%08X by way %d", uint32(text), via)
	}
}

// TestEnabledRoundTrip: whatever the way, the text calls what the way says.
func TestEnabledRoundTrip(t *testing.T) {
	offset := rapid.Custom(func(t *rapid.T) records.Addr {
		return records.Addr(rapid.Int64Range(-1<<26, 1<<26).Draw(t, "words") * 4)
	})
	rapid.Check(t, func(t *rapid.T) {
		s, err := arm64.Arch.Site(anyAddr(t, "rec")|4, isa.Word)
		if err != nil {
			t.Fatal(err)
		}
		d := isa.Destination{
			Target: s.Addr + offset.Draw(t, "target"),
			Entry:  s.Addr + offset.Draw(t, "entry"),
			PLT:    s.Addr + offset.Draw(t, "plt"),
		}
		inReach := func(to records.Addr) bool {
			off := int64(to - s.Addr)
			return off >= -128<<20 && off <= 128<<20-4
		}
		text, via, err := arm64.Arch.Enabled(s, d)
		ways := []records.Addr{d.Target, d.Entry, d.PLT}
		for i, to := range ways {
			if !inReach(to) || i == 2 && to == 0 {
				continue
			}
			want := isa.Insn{Kind: isa.Call, Len: 4, Target: to}
			if err != nil || int(via) != i || disassembled(s.Addr, text) != want {
				t.Fatalf("%+v by way %d, %v, want %+v by way %d", disassembled(s.Addr, text), via, err, want, i)
			}
			return
		}
		if err == nil {
			t.Fatalf("%08X leads nowhere", uint32(text))
		}
	})
}

func TestCallWantsAlignedAddresses(t *testing.T) {
	for off := records.Addr(1); off < 4; off++ {
		for at, to := range map[records.Addr]records.Addr{base + off: base, base: base + off, base - off: base - off} {
			if _, ok := arm64.Call(at, to); ok {
				t.Errorf("call at %s of %s", at, to)
			}
			if _, ok := arm64.Jump(at, to); ok {
				t.Errorf("jump at %s to %s", at, to)
			}
		}
	}
}

func TestTraits(t *testing.T) {
	want := isa.Traits{
		Name: "arm64", FetchLen: 4, BreakpointLen: 4, Breakpoint: "brk", Resync: "isb", CallOps: true,
		TrapSyncs: true, InterruptSyncs: true, StoresBuffered: true, RoundSparesSelf: true,
		InterruptRow: "IPI1", InterruptName: "Function call interrupts",
		StopRow: "IPI0", StopName: "Rescheduling interrupts",
	}
	for i, arch := range arm64.Layouts {
		want.Layout, want.CallOps = []string{"call-ops", "bti", "plain"}[i], i < 2
		if got := arch.Traits(); got != want {
			t.Errorf("%+v", got)
		}
		if s := arch.Scratch(isa.Site{Addr: base, Len: 4}, base+64); s != 0 {
			t.Errorf("scratch %#x", s)
		}
	}
}

func TestWordsAreAtomic(t *testing.T) {
	for at := base - 12; at < base+4; at++ {
		if g := records.Addr(arm64.Arch.Grain(at)); g < 1 || (at+g)%4 != 0 || g > 4 {
			t.Errorf("grain %d at %s", g, at)
		}
		for n := 1; n <= 8; n++ {
			want := n == 4 && at%4 == 0 || n == 8 && at%8 == 0
			if got := arm64.Arch.AtomicStore(at, n); got != want {
				t.Errorf("AtomicStore(%s, %d) = %v", at, n, got)
			}
			if got := arm64.Unlisted(arm64.Arch).AtomicStore(at, n); got != (n == 1) {
				t.Errorf("unlisted: AtomicStore(%s, %d) = %v", at, n, got)
			}
		}
	}
}

// TestPlainSitesCallTheEntryAlone: nothing at the site could tell the entry which
// other target is meant, so one out of reach is refused.
func TestPlainSitesCallTheEntryAlone(t *testing.T) {
	if tr := arm64.Plain.Traits(); tr.CallOps || tr.Layout != isa.LayoutPlain {
		t.Errorf("%+v", tr)
	}
	s, err := arm64.Plain.Site(base, isa.Word)
	if err != nil {
		t.Fatal(err)
	}
	if _, via, err := arm64.Plain.Enabled(s, isa.Destination{Target: base + 64, Entry: base + 64}); err != nil ||
		via != isa.Direct {
		t.Errorf("the entry: %v, %v", via, err)
	}
	far := isa.Destination{Target: base + arm64.Reach, Entry: base + 64}
	var reach *isa.ReachError
	if _, _, err := arm64.Plain.Enabled(s, far); !errors.As(err, &reach) {
		t.Errorf("out of reach: %v", err)
	}
	if _, via, err := arm64.Arch.Enabled(s, far); err != nil || via != isa.ThroughEntry {
		t.Errorf("out of reach, with a literal: %v, %v", via, err)
	}
}
