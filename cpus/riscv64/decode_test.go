// SPDX-License-Identifier: Apache-2.0

package riscv64_test

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/arch/riscv64/riscv64asm"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/cpus/riscv64"
	"github.com/textpoke/textpoke/records"
)

const t0 = riscv64asm.X5

// disassembled is what x/arch says about the word t, as our kinds. It looks at
// mnemonic and operands, so that it shares no mask with Decode.
func disassembled(at records.Addr, t isa.Text, scratch uint64) isa.Insn {
	inst, err := riscv64asm.Decode(t.Bytes(riscv64.InsnLen))
	if err != nil {
		return isa.Insn{}
	}
	n := uint8(inst.Len)
	rd, _ := inst.Args[0].(riscv64asm.Reg)
	switch inst.Op {
	case riscv64asm.AUIPC:
		if rd == t0 {
			imm := int64(inst.Args[1].(riscv64asm.Uimm).Imm) << 44 >> 32 // 20 bits, signed, times 4096
			return isa.Insn{Kind: isa.Scratch, Len: n, Target: at + records.Addr(imm)}
		}
	case riscv64asm.JALR:
		// c.jr and c.jalr read as JALR too, but link to x0 and ra.
		if from := inst.Args[1].(riscv64asm.RegOffset); rd == t0 && from.OfsReg == t0 {
			to := scratch + uint64(int64(from.Ofs.Imm))
			return isa.Insn{Kind: isa.Call, Len: n, Target: records.Addr(to - to%2)}
		}
	case riscv64asm.ADDI:
		rs, _ := inst.Args[1].(riscv64asm.Reg)
		imm, _ := inst.Args[2].(riscv64asm.Simm)
		// x/arch drops the immediate of a c.nop that is a hint.
		hint := n == 2 && inst.Enc != 1
		if rd == riscv64asm.X0 && rs == riscv64asm.X0 && imm.Imm == 0 && !hint {
			return isa.Insn{Kind: isa.Nop, Len: n}
		}
	case riscv64asm.EBREAK:
		return isa.Insn{Kind: isa.Breakpoint, Len: n}
	}
	return isa.Insn{}
}

// known are words of every kind that Decode recognises, and close neighbours.
var known = []isa.Text{
	riscv64.Nop4, riscv64.Nop2, riscv64.Ebreak, riscv64.CEbreak,
	riscv64.AuipcT0(0), riscv64.AuipcT0(1), riscv64.AuipcT0(-1), riscv64.AuipcT0(1 << 19),
	riscv64.JalrT0(0), riscv64.JalrT0(2047), riscv64.JalrT0(-2048), riscv64.JalrT0(1),
	0x00000097 /* auipc ra, 0 */, 0x000080E7 /* jalr ra, 0(ra) */, 0x00028067, /* jr t0 */
	0x00000073 /* ecall */, 0x0000100F /* fence.i */, 0x0000006F, /* j . */
	0x0005 /* c.nop 1 */, 0x9282 /* c.jalr t0 */, 0x8282 /* c.jr t0 */, 0x0085, /* c.addi ra, 1 */
	0x00000093 /* li ra, 0 */, 0x00100013, /* li zero, 1 */
}

func checkDecode(t rapid.TB, at records.Addr, text isa.Text, scratch uint64) {
	t.Helper()
	if got, want := riscv64.Arch.Decode(at, text, scratch), disassembled(at, text, scratch); got != want {
		t.Fatalf("Decode(%s, %08x, %#x) = %+v, x/arch says %+v", at, uint32(text), scratch, got, want)
	}
}

func anyAddr(t *rapid.T, label string) records.Addr {
	return records.Addr(rapid.Uint64().Draw(t, label)) &^ 1
}

func TestDecodeAgreesWithDisassembler(t *testing.T) {
	const scratch = 0xffffffff80012000
	for _, text := range known {
		checkDecode(t, base, text, scratch)
		for bit := range 32 {
			checkDecode(t, base, text^1<<bit, scratch)
			for second := range bit {
				checkDecode(t, base, text^1<<bit^1<<second, scratch)
			}
		}
	}
	// Every lower half with a few upper ones: all opcodes and registers, all
	// compressed instructions.
	for lo := range isa.Text(1 << 16) {
		for _, hi := range []isa.Text{0, 0x0010, 0x8002} {
			checkDecode(t, base, hi<<16|lo, scratch)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50_000 {
		// One word in 4096 is an auipc t0: let half of them begin like a known one.
		text := isa.Text(rng.Uint32())
		if rng.IntN(2) == 0 {
			mask := isa.Text(0xFFF) | isa.Text(rng.Uint32())&0xFF000
			text = text&^mask | known[rng.IntN(len(known))]&mask
		}
		checkDecode(t, records.Addr(rng.Uint64())&^1, text, rng.Uint64())
	}
}

func TestDecodeIgnoresBytesBehindInstruction(t *testing.T) {
	for _, text := range known {
		want := riscv64.Arch.Decode(base, text, 0x1000)
		n := max(int(want.Len), 2)
		if text&3 == 3 {
			n = 4
		}
		if got := riscv64.Arch.Decode(base, text|^isa.Mask(n), 0x1000); got != want {
			t.Errorf("%08x: %+v, with bytes behind it %+v", uint32(text), want, got)
		}
	}
}

// TestEncodedPairDisassembles runs the pair as a hart does, the auipc's value
// going into the jalr, with x/arch reading both.
func TestEncodedPairDisassembles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := anyAddr(t, "at")
		off := rapid.Int64Range(-1<<31-2048, 1<<31-2049).Draw(t, "off") &^ 1
		to := at + records.Addr(off)
		hi, lo, ok := riscv64.Split(at, to)
		if !ok || lo < -2048 || lo > 2047 {
			t.Fatalf("Split %+d: %d, %d, %v", off, hi, lo, ok)
		}
		auipc := disassembled(at, riscv64.AuipcT0(hi), 0)
		jalr := disassembled(at+4, riscv64.JalrT0(lo), uint64(auipc.Target))
		if auipc.Kind != isa.Scratch || auipc.Len != 4 || jalr != (isa.Insn{Kind: isa.Call, Len: 4, Target: to}) {
			t.Errorf("%+d: %+v, %+v", off, auipc, jalr)
		}
		checkDecode(t, at, riscv64.AuipcT0(hi), 0)
		checkDecode(t, at+4, riscv64.JalrT0(lo), uint64(auipc.Target))
	})
}

func FuzzDecode(f *testing.F) {
	for _, text := range known {
		f.Add(uint64(base), uint64(text), uint64(base))
	}
	f.Fuzz(func(t *testing.T, at, text, scratch uint64) {
		checkDecode(t, records.Addr(at), isa.Text(text)&isa.Mask(4), scratch)
		riscv64.Arch.Decode(records.Addr(at), isa.Text(text), scratch)
	})
}

var sink isa.Insn

func TestDecodeAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range known {
			sink = riscv64.Arch.Decode(base, text, 0x1000)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, text := range map[string]isa.Text{
		"nop": riscv64.Nop4, "auipc": riscv64.AuipcT0(1), "jalr": riscv64.JalrT0(1), "ebreak": riscv64.Ebreak,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sink = riscv64.Arch.Decode(base, text, 0x1000)
			}
		})
	}
}
