// SPDX-License-Identifier: Apache-2.0

package riscv64_test

import (
	"errors"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/records"
)

// base is the record of a function at ...2008: the first of a 7.2 kernel.
const base records.Addr = 0xffffffff8000200c

// TestEncodings compares with words worked out from the ISA manual.
func TestEncodings(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want isa.Text
	}{
		{"nop", riscv64.Arch.Disabled(isa.Site{Len: 4}), 0x00000013},
		{"nop; nop", riscv64.Arch.Disabled(isa.Site{Len: 8}), 0x00000013_00000013},
		{"ebreak", riscv64.Arch.Breakpoint(), 0x00100073},
		{"auipc t0, 0", riscv64.AuipcT0(0), 0x00000297},
		{"auipc t0, 1", riscv64.AuipcT0(1), 0x00001297},
		{"auipc t0, -1", riscv64.AuipcT0(-1), 0xFFFFF297},
		{"jalr t0, 0(t0)", riscv64.JalrT0(0), 0x000282E7},
		{"jalr t0, 4(t0)", riscv64.JalrT0(4), 0x004282E7},
		{"jalr t0, -4(t0)", riscv64.JalrT0(-4), 0xFFC282E7},
		{"jalr t0, -2048(t0)", riscv64.JalrT0(-2048), 0x800282E7},
	} {
		if c.got != c.want {
			t.Errorf("%s: %08x, want %08x", c.name, uint64(c.got), uint64(c.want))
		}
	}
}

func TestDecode(t *testing.T) {
	const scratch = uint64(base) + 0x1000
	for _, c := range []struct {
		text isa.Text
		want isa.Insn
	}{
		{0x00000013, isa.Insn{Kind: isa.Nop, Len: 4}},
		{0x0001, isa.Insn{Kind: isa.Nop, Len: 2}},
		{0x00010001, isa.Insn{Kind: isa.Nop, Len: 2}}, // c.nop; c.nop
		{0x00001297, isa.Insn{Kind: isa.Scratch, Len: 4, Target: base + 0x1000}},
		{0x80000297, isa.Insn{Kind: isa.Scratch, Len: 4, Target: base - 1<<31}},
		{0x004282E7, isa.Insn{Kind: isa.Call, Len: 4, Target: base + 0x1004}},
		{0x800282E7, isa.Insn{Kind: isa.Call, Len: 4, Target: base + 0x800}},
		{0x005282E7, isa.Insn{Kind: isa.Call, Len: 4, Target: base + 0x1004}}, // bit 0 is cleared
		{0x00100073, isa.Insn{Kind: isa.Breakpoint, Len: 4}},
		{0x9002, isa.Insn{Kind: isa.Breakpoint, Len: 2}},
		{0x00000097, isa.Insn{}}, // auipc ra
		{0x000080E7, isa.Insn{}}, // jalr ra, 0(ra)
		{0x0005, isa.Insn{}},     // c.nop with a hint
		{0x9282, isa.Insn{}},     // c.jalr t0
		{0x00000073, isa.Insn{}}, // ecall
		// Half a nop and half a jalr, as a hart may fetch them at an address that
		// is not a multiple of 4: addi x0, tp, 4 and jalr t0, 0(ra).
		{0x00420013, isa.Insn{}},
		{0x000082E7, isa.Insn{}},
		{0, isa.Insn{}},
	} {
		if got := riscv64.Arch.Decode(base, c.text, scratch); got != c.want {
			t.Errorf("%08x: %+v, want %+v", uint32(c.text), got, c.want)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		off    int64
		hi, lo int32
		ok     bool
	}{
		{0, 0, 0, true},
		{2046, 0, 2046, true},
		{2048, 1, -2048, true}, // the sign bit of lo12 takes the next 4 KiB
		{4094, 1, -2, true},
		{-2048, 0, -2048, true},
		{-2050, -1, 2046, true},
		{1<<31 - 2050, 1<<19 - 1, 2046, true},
		{1<<31 - 2048, 0, 0, false},
		{-1<<31 - 2048, -1 << 19, -2048, true},
		{-1<<31 - 2050, 0, 0, false},
		{1, 0, 0, false}, // jalr clears bit 0
		{1<<63 - 2, 0, 0, false},
		{-1 << 63, 0, 0, false},
	} {
		hi, lo, ok := riscv64.Split(base, base+records.Addr(c.off))
		if hi != c.hi || lo != c.lo || ok != c.ok {
			t.Errorf("%+d: %d, %d, %v, want %d, %d, %v", c.off, hi, lo, ok, c.hi, c.lo, c.ok)
		}
	}
}

func TestSite(t *testing.T) {
	for _, c := range []struct {
		rec    records.Addr
		layout isa.Layout
		want   isa.Site
		what   string
		align  int
	}{
		{base, isa.Word, isa.Site{Addr: base, Literal: base - 12, Len: 4}, "", 0},
		{base + 8, isa.Word, isa.Site{Addr: base + 8, Literal: base - 4, Len: 4}, "", 0},
		{base + 4, isa.Word, isa.Site{}, "literal", 8},
		{base + 2, isa.Word, isa.Site{}, "site", 4},
		{base + 1, isa.Word, isa.Site{}, "site", 4},
		{base, isa.Pair, isa.Site{Addr: base - 4, Len: 8}, "", 0},
		{base + 2, isa.Pair, isa.Site{Addr: base - 2, Len: 8}, "", 0},
		{base + 4, isa.Pair, isa.Site{Addr: base, Len: 8}, "", 0},
		{base + 1, isa.Pair, isa.Site{}, "site", 2},
	} {
		s, err := riscv64.Arch.Site(c.rec, c.layout)
		if s != c.want {
			t.Errorf("%s, layout %d: %+v, want %+v", c.rec, c.layout, s, c.want)
		}
		if c.what == "" {
			if err != nil {
				t.Errorf("%s, layout %d: %v", c.rec, c.layout, err)
			}
			// ftrace_caller: literal = t0 - 16, the jalr leaving t0 = rec + 4.
			if c.layout == isa.Word && s.Literal != c.rec+4-16 {
				t.Errorf("%s: literal %s", c.rec, s.Literal)
			}
			continue
		}
		var mis *isa.MisalignedError
		if !errors.As(err, &mis) || *mis != (isa.MisalignedError{Arch: "riscv64", Record: c.rec, What: c.what,
			Align: c.align}) {
			t.Errorf("%s, layout %d: %v, want a misaligned %s", c.rec, c.layout, err, c.what)
		}
	}
}

func TestTraits(t *testing.T) {
	want := isa.Traits{
		Name: "riscv64", Layout: "call-ops", FetchLen: 4, BreakpointLen: 4, Breakpoint: "ebreak", Resync: "fence.i", CallOps: true,
		MaskedRounds: true, StoresBuffered: true, RoundPerLiteral: true, RoundAtEnd: true,
		FirmwareRounds: true,
		RestsOn: "MP.FR+fence+po being forbidden, which Ziccid or in-order decode forbids and the base model " +
			"(Ziccif alone) allows",
		InterruptRow: "FW_FENCE_I_RECVD", InterruptName: riscv64.FenceName,
		StopRow: "IPI0", StopName: "Rescheduling interrupts",
	}
	if got := riscv64.Arch.Traits(); got != want {
		t.Errorf("%+v", got)
	}
}

func TestAlignedParcelsAreAtomic(t *testing.T) {
	for at := base - 12; at < base+4; at++ {
		want := map[records.Addr]int{0: 4, 2: 2}[at%4]
		if got := riscv64.Arch.Grain(at); got != max(want, 1) {
			t.Errorf("grain %d at %s", got, at)
		}
		for n := 1; n <= 8; n++ {
			want := n == 2 && at%2 == 0 || n == 4 && at%4 == 0 || n == 8 && at%8 == 0
			if got := riscv64.Arch.AtomicStore(at, n); got != want {
				t.Errorf("AtomicStore(%s, %d) = %v", at, n, got)
			}
		}
	}
}

// TestPlainSites: without CALL_OPS there is no literal, the jalr calls the entry alone, and it
// lies wherever a compressed instruction may end.
func TestPlainSites(t *testing.T) {
	if tr := riscv64.Plain.Traits(); tr.CallOps || tr.Layout != isa.LayoutPlain {
		t.Errorf("%+v", tr)
	}
	for _, rec := range []records.Addr{base, base + 2, base + 4} {
		s, err := riscv64.Plain.Site(rec, isa.Word)
		if err != nil || s != (isa.Site{Addr: rec, Len: 4}) {
			t.Errorf("%s: %+v, %v", rec, s, err)
		}
		if _, via, err := riscv64.Plain.Enabled(s, isa.Destination{Target: base + 0x10000, Entry: base +
			0x10000}); err != nil || via != isa.Direct {
			t.Errorf("the entry: %v, %v", via, err)
		}
		if _, _, err := riscv64.Plain.Enabled(s, isa.Destination{Target: base + 0x20000, Entry: base + 0x10000}); err == nil {
			t.Error("a target that the entry cannot find is called through it")
		}
	}
	if _, err := riscv64.Plain.Site(base+1, isa.Word); err == nil {
		t.Error("a site inside of a parcel is taken")
	}
}
