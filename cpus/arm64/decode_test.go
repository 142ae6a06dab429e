// SPDX-License-Identifier: Apache-2.0

package arm64_test

import (
	"math/rand/v2"
	"testing"

	"golang.org/x/arch/arm64/arm64asm"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/arm64"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// disassembled is what x/arch says about the word t, as our kinds. It looks at
// mnemonic and operands, so that it shares no mask with Decode.
func disassembled(at records.Addr, t isa.Text) isa.Insn {
	inst, err := arm64asm.Decode(t.Bytes(arm64.InsnLen))
	if err != nil {
		return isa.Insn{}
	}
	// B with a condition has it as the first operand and is not ours.
	rel, branch := inst.Args[0].(arm64asm.PCRel)
	to := at + records.Addr(int64(rel))
	switch {
	case inst.Op == arm64asm.NOP:
		return isa.Insn{Kind: isa.Nop, Len: arm64.InsnLen}
	case inst.Op == arm64asm.BL:
		return isa.Insn{Kind: isa.Call, Len: arm64.InsnLen, Target: to}
	case inst.Op == arm64asm.B && branch:
		return isa.Insn{Kind: isa.Jump, Len: arm64.InsnLen, Target: to}
	case inst.Op == arm64asm.BRK:
		return isa.Insn{Kind: isa.Breakpoint, Len: arm64.InsnLen}
	}
	return isa.Insn{}
}

// known are words of every kind that Decode recognises, and close neighbours.
var known = []isa.Text{
	arm64.Nop, arm64.Brk, 0xD43FFFE0, 0xAA1E03E9,
	0x94000001, 0x97FFFFFF, 0x95FFFFFF, 0x96000000, 0x14000001, 0x17FFFFFF,
	0x54000020 /* B.EQ */, 0xD503203F /* YIELD */, 0xD5032FFF, /* HINT #127 */
	0xD4000001 /* SVC */, 0xD4400000 /* HLT */, 0xD5033FDF /* ISB */, 0xD503245F, /* BTI C */
	0xD63F0000 /* BLR X0 */, 0xD65F03C0, /* RET */
}

func checkDecode(t rapid.TB, at records.Addr, text isa.Text) {
	t.Helper()
	if got, want := arm64.Arch.Decode(at, text, 0), disassembled(at, text); got != want {
		t.Fatalf("Decode(%s, %08X) = %+v, x/arch says %+v", at, uint32(text), got, want)
	}
}

func anyAddr(t *rapid.T, label string) records.Addr {
	return records.Addr(rapid.Uint64().Draw(t, label)) &^ 3
}

func TestDecodeAgreesWithDisassembler(t *testing.T) {
	for _, text := range known {
		checkDecode(t, base, text)
		for bit := range 32 {
			checkDecode(t, base, text^1<<bit)
			for second := range bit {
				checkDecode(t, base, text^1<<bit^1<<second)
			}
		}
	}
	// Every upper half with a few lower ones: all opcodes, all signs of imm26.
	for hi := range isa.Text(1 << 16) {
		for _, lo := range []isa.Text{0, 1, 0x201F, 0xFFE0, 0xFFFF} {
			checkDecode(t, base, hi<<16|lo)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		checkDecode(t, records.Addr(rng.Uint64())&^3, isa.Text(rng.Uint32()))
	}
}

func TestDecodeIgnoresBytesBehindWord(t *testing.T) {
	for _, text := range known {
		want := arm64.Arch.Decode(base, text, 0)
		if got := arm64.Arch.Decode(base, text|^isa.Mask(4), 1); got != want {
			t.Errorf("%08X: %+v, with bytes behind it %+v", uint32(text), want, got)
		}
	}
}

func TestEncodedBranchesDisassemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := anyAddr(t, "at")
		to := at + records.Addr(rapid.Int64Range(-1<<25, 1<<25-1).Draw(t, "imm26")*4)
		for kind, encode := range map[isa.InsnKind]func(at, to records.Addr) (isa.Text, bool){
			isa.Call: arm64.Call, isa.Jump: arm64.Jump,
		} {
			text, ok := encode(at, to)
			want := isa.Insn{Kind: kind, Len: arm64.InsnLen, Target: to}
			if !ok || disassembled(at, text) != want {
				t.Errorf("%s at %s to %s: %v, %08X disassembles to %+v", kind, at, to, ok, uint32(text), disassembled(at, text))
			}
			checkDecode(t, at, text)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, text := range known {
		f.Add(uint64(base), uint64(text))
	}
	f.Fuzz(func(t *testing.T, at, text uint64) {
		checkDecode(t, records.Addr(at), isa.Text(text)&isa.Mask(4))
		arm64.Arch.Decode(records.Addr(at), isa.Text(text), at)
	})
}

var sink isa.Insn

func TestDecodeAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range known {
			sink = arm64.Arch.Decode(base, text, 0)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, text := range map[string]isa.Text{"nop": arm64.Nop, "call": 0x94000001, "brk": arm64.Brk} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sink = arm64.Arch.Decode(base, text, 0)
			}
		})
	}
}

// TestListedAgreesWithDisassembler: B2.2.5 by mnemonic. x/arch knows neither HVC nor SMC:
// exceptions of opcode 0 whose lowest bits are 2 and 3 (Arm ARM, C4.1).
func TestListedAgreesWithDisassembler(t *testing.T) {
	check := func(text isa.Text) {
		t.Helper()
		inst, err := arm64asm.Decode(text.Bytes(arm64.InsnLen))
		exception := text.Slice(0, 4)
		want := exception>>21 == 0xD4000000>>21 && (exception&0x1F == 2 || exception&0x1F == 3)
		if err == nil {
			switch inst.Op {
			case arm64asm.B, arm64asm.BL, arm64asm.BRK, arm64asm.CBNZ, arm64asm.CBZ, arm64asm.HVC, arm64asm.ISB, arm64asm.NOP,
				arm64asm.SMC, arm64asm.SVC, arm64asm.TBNZ, arm64asm.TBZ:
				want = true
			}
		}
		if got := arm64.Listed(text); got != want {
			t.Errorf("%08X: listed %v, x/arch says %s, %v", uint32(text), got, inst, err)
		}
	}
	kinds := []isa.Text{0x34000040, 0xB5000041, 0x36080042, 0xB7F80043, 0xD4000002, 0xD4000003, 0xA9000780, 0x58000041}
	for _, text := range append(kinds, known...) {
		check(text)
		for bit := range 32 {
			check(text ^ 1<<bit)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		check(isa.Text(rng.Uint32()))
	}
}
