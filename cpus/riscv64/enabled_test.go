// SPDX-License-Identifier: Apache-2.0

package riscv64_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/records"
)

// called is where a hart arrives that runs an enabled Word site, the auipc
// before it being fixed for anchor, with x/arch reading the jalr.
func called(s isa.Site, text isa.Text, anchor records.Addr) records.Addr {
	insn := disassembled(s.Addr, text, riscv64.Arch.Scratch(s, anchor))
	if insn.Kind != isa.Call || insn.Len != 4 {
		return 0
	}
	return insn.Target
}

func TestWordCallsWhatIsInReach(t *testing.T) {
	const far = 1 << 31
	for _, c := range []struct {
		name               string
		target, entry, plt int64 // from the auipc; plt 0: none
		via                isa.Via
		to                 int64
		fails              bool
	}{
		{"target is the entry", 0x10000, 0x10000, 0, isa.Direct, 0x10000, false},
		{"target far from the entry", 0x20000, 0x10000, 0, isa.ThroughEntry, 0x10000, false},
		{"same 4 KiB", 0x10100, 0x10000, 0, isa.Direct, 0x10100, false},
		{"last of the same 4 KiB", 0x107FE, 0x10000, 0, isa.Direct, 0x107FE, false},
		{"first of the next 4 KiB", 0x10800, 0x107FE, 0, isa.ThroughEntry, 0x107FE, false},
		{"last of the previous 4 KiB", 0x107FE, 0x10800, 0, isa.ThroughEntry, 0x10800, false},
		{"first of the same 4 KiB", 0xF800, 0xFF00, 0, isa.Direct, 0xF800, false},
		{"2046 up", 0xFFFE, 0xF800, 0, isa.Direct, 0xFFFE, false},
		{"2048 up in the same 4 KiB", 0x10000, 0xF800, 0, isa.ThroughEntry, 0xF800, false},
		{"2048 down in the same 4 KiB", 0xFF00, 0x10700, 0, isa.ThroughEntry, 0x10700, false},
		{"odd target", 0x10101, 0x10000, 0, isa.ThroughEntry, 0x10000, false},
		{"entry last up", 0x10000, far - 2050, 0x20000, isa.ThroughEntry, far - 2050, false},
		{"entry beyond up", 0x10000, far - 2048, 0x20000, isa.ThroughPLT, 0x20000, false},
		{"entry last down", 0x10000, -far - 2048, 0x20000, isa.ThroughEntry, -far - 2048, false},
		{"entry beyond down", 0x10000, -far - 2050, 0x20000, isa.ThroughPLT, 0x20000, false},
		{"target at an entry beyond", far, far, 0x20000, isa.ThroughPLT, 0x20000, false},
		{"PLT last down", far, far, -far - 2048, isa.ThroughPLT, -far - 2048, false},
		{"no PLT", 0x10000, far, 0, 0, 0, true},
		{"PLT beyond", 0x10000, far, far, 0, 0, true},
	} {
		s := isa.Site{Addr: base, Literal: base - 12, Len: 4}
		at := func(off int64) records.Addr { return base - 4 + records.Addr(off) }
		d := isa.Destination{Target: at(c.target), Entry: at(c.entry)}
		if c.plt != 0 {
			d.PLT = at(c.plt)
		}
		text, via, err := riscv64.Arch.Enabled(s, d)
		if c.fails {
			wantReachError(t, c.name, err, base, d.Entry)
			continue
		}
		anchor := d.Entry
		if via == isa.ThroughPLT {
			anchor = d.PLT
		}
		if to := called(s, text, anchor); err != nil || via != c.via || to != at(c.to) {
			t.Errorf("%s: to %s by way %d, %v, want %s by way %d", c.name, to, via, err, at(c.to), c.via)
		}
	}
}

func wantReachError(t *testing.T, name string, err error, site, to records.Addr) {
	t.Helper()
	var reach *isa.ReachError
	if !errors.As(err, &reach) || *reach != (isa.ReachError{Arch: "riscv64", Site: site, To: to, Reach: 2 << 30}) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestKernelsNearTargets shows what the comparison in Enabled is for: the
// kernel's rule (within 2047 bytes of the entry: low 12 bits of the target's
// own offset) lands 4096 bytes off wherever Enabled goes through the entry.
func TestKernelsNearTargets(t *testing.T) {
	wrong := 0
	for entry := base + 0x40000; entry < base+0x42000; entry += 254 {
		s := isa.Site{Addr: base, Len: 4}
		for target := entry - 2046; target <= entry+2046; target += 2 {
			_, lo, _ := riscv64.Split(s.Addr-4, target)
			kernels := called(s, riscv64.JalrT0(lo), entry)
			text, via, err := riscv64.Arch.Enabled(s, isa.Destination{Target: target, Entry: entry})
			switch {
			case err != nil:
				t.Fatal(err)
			case kernels == target:
				if via != isa.Direct || called(s, text, entry) != target {
					t.Fatalf("entry %s, target %s: way %d", entry, target, via)
				}
			default:
				wrong++
				if kernels != target-4096 && kernels != target+4096 {
					t.Fatalf("entry %s, target %s: kernel calls %s", entry, target, kernels)
				}
				if via != isa.ThroughEntry || called(s, text, entry) != entry {
					t.Fatalf("entry %s, target %s: way %d", entry, target, via)
				}
			}
		}
	}
	if wrong == 0 {
		t.Error("no target in another 4 KiB was tried")
	}
}

// offset draws a distance of up to 3 GiB, or a short one.
func offset(t *rapid.T, label string) records.Addr {
	return records.Addr(rapid.OneOf(
		rapid.Int64Range(-3<<30, 3<<30), rapid.Int64Range(-5000, 5000),
	).Draw(t, label)) &^ 1
}

// TestWordRoundTrip: whatever the way, the text calls what the way says.
func TestWordRoundTrip(t *testing.T) {
	inReach := func(s isa.Site, to records.Addr) bool {
		off := int64(to - (s.Addr - 4))
		return off >= -1<<31-2048 && off <= 1<<31-2049
	}
	rapid.Check(t, func(t *rapid.T) {
		s, err := riscv64.Arch.Site(anyAddr(t, "rec")&^7|4, isa.Word)
		if err != nil {
			t.Fatal(err)
		}
		entry := s.Addr + offset(t, "entry")
		d := isa.Destination{Entry: entry, Target: entry + offset(t, "target")}
		if rapid.Bool().Draw(t, "slot") {
			d.PLT = s.Addr + offset(t, "plt")
		}
		text, via, err := riscv64.Arch.Enabled(s, d)
		slot := d.PLT != 0 && inReach(s, d.PLT)
		if reachable := inReach(s, d.Entry) || slot; reachable != (err == nil) {
			t.Fatalf("%+v: %v", d, err)
		}
		if err != nil {
			return
		}
		if (via == isa.ThroughPLT) == inReach(s, d.Entry) {
			t.Errorf("%+v: way %d", d, via)
		}
		want := map[isa.Via]records.Addr{isa.Direct: d.Target, isa.ThroughEntry: d.Entry, isa.ThroughPLT: d.PLT}[via]
		anchor := d.Entry
		if via == isa.ThroughPLT {
			anchor = d.PLT
		}
		if to := called(s, text, anchor); to != want {
			t.Errorf("%+v by way %d calls %s", d, via, to)
		}
	})
}

// TestPairRoundTrip runs both instructions with x/arch reading them.
func TestPairRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := riscv64.Arch.Site(anyAddr(t, "rec"), isa.Pair)
		if err != nil {
			t.Fatal(err)
		}
		d := isa.Destination{Target: s.Addr + offset(t, "target")}
		off := int64(d.Target - s.Addr)
		text, via, err := riscv64.Arch.Enabled(s, d)
		if reachable := off >= -1<<31-2048 && off <= 1<<31-2049; reachable != (err == nil) {
			t.Fatalf("%+d: %v", off, err)
		}
		if err != nil {
			return
		}
		auipc := disassembled(s.Addr, text.Slice(0, 4), 0)
		jalr := disassembled(s.Addr+4, text.Slice(4, 4), uint64(auipc.Target))
		if auipc.Kind != isa.Scratch || via != isa.Direct || jalr != (isa.Insn{Kind: isa.Call, Len: 4, Target: d.Target}) {
			t.Errorf("%+d: %+v, %+v", off, auipc, jalr)
		}
	})
}

func TestPairReach(t *testing.T) {
	s := isa.Site{Addr: base - 4, Len: 8}
	for _, c := range []struct {
		off  int64 // from the auipc
		want isa.Text
	}{
		{0, 0x000282E7_00000297},
		{0x12345678, 0x678282E7_12345297},
		{0x800, 0x800282E7_00001297},
		{1<<31 - 2050, 0x7FE282E7_7FFFF297},
		{1<<31 - 2048, 0},
		{-1<<31 - 2048, 0x800282E7_80000297},
		{-1<<31 - 2050, 0},
		{3, 0},
	} {
		// Neither the entry nor a PLT slot helps: nothing tells them the target.
		d := isa.Destination{Target: s.Addr + records.Addr(c.off), Entry: s.Addr + 64, PLT: s.Addr + 128}
		text, via, err := riscv64.Arch.Enabled(s, d)
		if c.want == 0 {
			wantReachError(t, "pair", err, s.Addr, d.Target)
			continue
		}
		if err != nil || via != isa.Direct || text != c.want {
			t.Errorf("%+d: %016x by way %d, %v, want %016x", c.off, uint64(text), via, err, uint64(c.want))
		}
	}
}

// TestScratch compares with what the auipc of the site computes, x/arch
// reading it.
func TestScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := isa.Site{Addr: anyAddr(t, "site"), Len: 4}
		entry := s.Addr + offset(t, "entry")
		got := riscv64.Arch.Scratch(s, entry)
		if hi, _, ok := riscv64.Split(s.Addr-4, entry); ok {
			want := disassembled(s.Addr-4, riscv64.AuipcT0(hi), 0)
			if want.Kind != isa.Scratch || records.Addr(got) != want.Target {
				t.Errorf("%#x, want %+v", got, want)
			}
		} else if d := int64(entry - records.Addr(got)); -2048 <= d && d <= 2047 {
			t.Errorf("%#x reaches %s, which is out of reach", got, entry)
		}
		s.Len = 8
		if got := riscv64.Arch.Scratch(s, entry); got != 0 {
			t.Errorf("%#x before a pair", got)
		}
	})
}
