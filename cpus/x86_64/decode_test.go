// SPDX-License-Identifier: Apache-2.0

package x86_64_test

import (
	"math/rand/v2"
	"regexp"
	"testing"

	"golang.org/x/arch/x86/x86asm"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus/isa"
	x86 "github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records"
)

// programs are the plain instructions as x/arch tells them: how GNU's assembler writes
// each, and its opcode, since some can be made in two ways.
var programs = []struct {
	text   *regexp.Regexp
	opcode uint32
	n      int
}{
	{regexp.MustCompile(`^lea (-?0x[0-9a-f]{1,2})?\(%rsp\),%rsp$`), 0x8D, 5},
	{regexp.MustCompile(`^mov %rsp,%rbp$`), 0x89, 3},
	{regexp.MustCompile(`^sub \$-?0x[0-9a-f]+,%rsp$`), 0x83, 4},
	{regexp.MustCompile(`^mov %edi,%edi$`), 0x8B, 2},
	{regexp.MustCompile(`^syscall$`), 0x0F, 2},
	{regexp.MustCompile(`^xor %eax,%eax$`), 0x31, 2},
	{regexp.MustCompile(`^push %rbp$`), 0x55, 1},
	{regexp.MustCompile(`^mov \$-?0x[0-9a-f]+,%eax$`), 0xB8, 5},
}

// isPlain tells whether x/arch takes an instruction for one of them.
func isPlain(inst x86asm.Inst) bool {
	text := x86asm.GNUSyntax(inst, 0, nil)
	if m, ok := inst.Args[1].(x86asm.Mem); ok && m.Scale > 1 { // of no index: the same in another way
		return false
	}
	if p := inst.Prefix; p[0] != 0 && p[0].String() != "REX.W" || p[1] != 0 {
		return false
	}
	for _, p := range programs {
		if p.text.MatchString(text) && inst.Opcode>>24 == p.opcode && inst.Len == p.n {
			return true
		}
	}
	return false
}

// disassembled is what x/arch says about the eight bytes of t, as our kinds. It
// looks at operands and prefixes, not at bytes, so that it shares nothing with
// Decode.
func disassembled(at records.Addr, t isa.Text) isa.Insn {
	inst, err := x86asm.Decode(t.Bytes(x86.Nop8Len), 64)
	if err != nil {
		if byte(t) == 0x06 { // push %es, which 64-bit mode has not
			return isa.Insn{Kind: isa.Breakpoint, Len: 1}
		}
		return isa.Insn{}
	}
	n := uint8(inst.Len)
	if isPlain(inst) {
		return isa.Insn{Kind: isa.Plain, Len: n}
	}
	if m, ok := inst.Args[0].(x86asm.Mem); ok && inst.Op == x86asm.JMP && n == x86.IndirectLen && inst.Prefix[0] == 0 &&
		m.Base == 0 && m.Index == 0 && m.Scale <= 1 && m.Segment == 0 {
		return isa.Insn{Kind: isa.Jump, Len: n, Target: records.Addr(int32(m.Disp))} // sign-extended
	}
	if p := inst.Prefix; p[0] != 0 {
		// The one prefixed form that is ours: a plain nop behind one 66.
		if p[0] == x86asm.PrefixData16 && p[1] == 0 && inst.Op == x86asm.NOP && inst.Args[0] == nil {
			return isa.Insn{Kind: isa.Nop, Len: n}
		}
		return isa.Insn{}
	}
	rel, branch := inst.Args[0].(x86asm.Rel)
	to := at + records.Addr(n) + records.Addr(int64(rel))
	switch {
	case inst.Op == x86asm.CALL && branch:
		return isa.Insn{Kind: isa.Call, Len: n, Target: to}
	case (inst.Op == x86asm.JMP || inst.Op == x86asm.JE) && branch:
		return isa.Insn{Kind: isa.Jump, Len: n, Target: to}
	case inst.Op == x86asm.RET && n == 1:
		return isa.Insn{Kind: isa.Return, Len: n}
	case inst.Op == x86asm.NOP && n == 1 && inst.Args[0] == nil:
		return isa.Insn{Kind: isa.Nop, Len: n}
	case inst.Op == x86asm.INT && n == 1: // the two-byte int 3 is CD 03
		return isa.Insn{Kind: isa.Breakpoint, Len: n}
	case inst.Op == x86asm.NOP && n == 8:
		// With eight bytes and no prefix there are a base or an index, and 32 bits.
		if _, ok := inst.Args[0].(x86asm.Mem); ok && inst.MemBytes == 4 && byte(t>>16) == 0x84 {
			return isa.Insn{Kind: isa.Nop, Len: n}
		}
	case inst.Op == x86asm.NOP && n == 5:
		// With five bytes and no prefix there is a displacement of 8 bits.
		if m, ok := inst.Args[0].(x86asm.Mem); ok && inst.MemBytes == 4 &&
			m == (x86asm.Mem{Base: x86asm.RAX, Scale: 1, Index: x86asm.RAX}) {
			return isa.Insn{Kind: isa.Nop, Len: n}
		}
	}
	return isa.Insn{}
}

// known are texts of every kind that Decode recognises, and close neighbours.
var known = []isa.Text{
	x86.Nop5, x86.Nop2, x86.Int3,
	isa.TextOf(0xE8, 1, 2, 3, 4), isa.TextOf(0xE9, 0xFB, 0xFF, 0xFF, 0xFF), isa.TextOf(0xEB, 0xFE),
	isa.TextOf(0x66, 0xEB, 0xFE), isa.TextOf(0x40, 0x90), isa.TextOf(0x66, 0x66, 0x90),
	isa.TextOf(
		0x66,
		0x0F,
		0x1F,
		0x04,
		0x00,
	), isa.TextOf(0x0F, 0x1F, 0x84, 0, 0), isa.TextOf(0x0F, 0x1F, 0x84, 0xE8, 1, 2, 3, 4),
	isa.TextOf(0xCD, 0x03), isa.TextOf(0xF3, 0x90), isa.TextOf(0xC3), isa.TextOf(0xC2),
	x86.Invalid, isa.TextOf(0xFF, 0x24, 0x25, 0x80, 0x02, 0x06), isa.TextOf(0xB8, 1, 2, 3, 4), isa.TextOf(0x0F, 0x05),
	isa.TextOf(0x55), isa.TextOf(0x48, 0x89, 0xE5), isa.TextOf(0x48, 0x83, 0xEC, 8), isa.TextOf(0x8B, 0xFF),
	isa.TextOf(0x48, 0x8D, 0x64, 0x24, 0x80), isa.TextOf(0x31, 0xC0),
	x86.Nop1, isa.TextOf(0x74, 0x10), isa.TextOf(0x75, 0x10), isa.TextOf(0x0F, 0x84, 1, 2, 3, 0x84), isa.TextOf(0x0F, 0x85,
		1, 2, 3, 4),
}

func checkDecode(t rapid.TB, at records.Addr, text isa.Text) {
	t.Helper()
	if got, want := x86.Arch.Decode(at, text, 0), disassembled(at, text); got != want {
		t.Fatalf("Decode(%s, % s) = %+v, x/arch says %+v", at, text.Format(x86.Nop8Len), got, want)
	}
}

func anyAddr(t *rapid.T, label string) records.Addr {
	return records.Addr(rapid.Uint64().Draw(t, label))
}

func TestDecodeAgreesWithDisassembler(t *testing.T) {
	for _, text := range known {
		checkDecode(t, 0xffffffff81000000, text)
		for bit := range 8 * x86.Nop8Len {
			checkDecode(t, 0xffffffff81000000, text^1<<bit)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		// Most random bytes are no branch: let half of them begin like one.
		text := isa.Text(rng.Uint64()) & isa.Mask(x86.Nop8Len)
		if rng.IntN(2) == 0 {
			text = text.Splice(0, 1, known[rng.IntN(len(known))])
		}
		checkDecode(t, records.Addr(rng.Uint64()), text)
	}
}

func TestDecodeIgnoresBytesBehindSite(t *testing.T) {
	for _, text := range known {
		want := x86.Arch.Decode(0x1000, text, 0)
		if got := x86.Arch.Decode(0x1000, text|^isa.Mask(x86.Nop8Len), 1); got != want {
			t.Errorf("% s: %+v, with bytes behind it %+v", text.Format(x86.SiteLen), want, got)
		}
	}
}

func TestEncodedBranchesDisassemble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := anyAddr(t, "at")
		to := at + x86.SiteLen + records.Addr(rapid.Int32().Draw(t, "rel"))
		for kind, encode := range map[isa.InsnKind]func(at, to records.Addr) (isa.Text, bool){
			isa.Call: x86.Call, isa.Jump: x86.Jump,
		} {
			text, ok := encode(at, to)
			want := isa.Insn{Kind: kind, Len: x86.SiteLen, Target: to}
			if !ok || disassembled(at, text) != want {
				t.Errorf("%s at %s to %s: %v, % s disassembles to %+v", kind, at, to, ok, text.Format(x86.SiteLen),
					disassembled(at, text))
			}
			checkDecode(t, at, text)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, text := range known {
		f.Add(uint64(0xffffffff81000000), uint64(text))
	}
	f.Fuzz(func(t *testing.T, at, text uint64) {
		checkDecode(t, records.Addr(at), isa.Text(text)&isa.Mask(x86.Nop8Len))
		x86.Arch.Decode(records.Addr(at), isa.Text(text), at)
	})
}

var sink isa.Insn

func TestDecodeAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() {
		for _, text := range known {
			sink = x86.Arch.Decode(0xffffffff81000000, text, 0)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecode(b *testing.B) {
	for name, text := range map[string]isa.Text{"nop": x86.Nop5, "call": known[3], "int3": x86.Int3} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sink = x86.Arch.Decode(0xffffffff81000000, text, 0)
			}
		})
	}
}
