// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// The instructions that do not depend on an address.
const (
	Nop4 isa.Text = 0x00000013 // addi x0, x0, 0: the disabled site
	Nop2 isa.Text = 0x0001     // c.nop, what the compiler fills sites with under RVC

	Ebreak  isa.Text = 0x00100073
	CEbreak isa.Text = 0x9002 // c.ebreak, 2 bytes
)

// Opcodes with register t0 filled in, as in asm/ftrace.h, and their masks: an
// instruction is auipc t0 where word&AuipcMask == Auipc.
const (
	Auipc     isa.Text = 0x00000297 // auipc t0, imm20: t0 = pc + imm20<<12
	AuipcMask isa.Text = 0x00000FFF
	Jalr      isa.Text = 0x000282E7 // jalr t0, imm12(t0): calls t0+imm12, bit 0 cleared
	JalrMask  isa.Text = 0x000FFFFF
)

// The lengths.
const (
	InsnLen    = 4 // auipc, jalr, nop, ebreak
	ParcelLen  = 2 // c.nop, c.ebreak; the unit of alignment
	PairLen    = 8
	lowerSpan  = 0x1000 // what one auipc immediate covers with a jalr
	lowerRound = lowerSpan / 2
)

// Reach is how far the pair goes in either direction, roughly: the jalr's part
// is signed, so that it is -Reach-2048 to Reach-2049 from the auipc.
const Reach = 1 << 31

// JalrRange is how far from ftrace_caller the kernel calls a target directly
// (JALR_RANGE, asm/ftrace.h).
const JalrRange = 2047

// Split cuts the way from an auipc to a target into the immediates of auipc
// and jalr: from + hi<<12 + lo = target, lo being in [-2048, 2047]. It fails
// beyond Reach, and for odd targets, which jalr would round down.
func Split(from, target records.Addr) (hi, lo int32, ok bool) {
	off := int64(target - from)
	up := upper(off)
	if off+lowerRound != int64(int32(off+lowerRound)) || target%2 != 0 {
		return 0, 0, false
	}
	return int32(up >> 12), int32(off - up), true
}

// upper is what auipc adds for an offset: the nearest multiple of 4096, cut to
// the 32 bits that the instruction has (to_auipc_t0, AUIPC_PAD). The nearest,
// since the jalr's 12 bits are signed.
func upper(off int64) int64 { return int64(int32(off+lowerRound) &^ (lowerSpan - 1)) }

// AuipcT0 encodes auipc t0, hi.
func AuipcT0(hi int32) isa.Text { return Auipc | isa.Text(uint32(hi)<<12) }

// JalrT0 encodes jalr t0, lo(t0).
func JalrT0(lo int32) isa.Text { return Jalr | isa.Text(uint32(lo)<<20) }

// Decode knows what sites hold: both nops, auipc t0 (Scratch, with the value
// that it computes), jalr t0 through t0 (Call, from the scratch register), and
// both breakpoints. Everything else is Unknown, also the same with other
// registers and the hints that do nothing, which no patcher writes. Only the
// first four bytes of t count, two for a compressed instruction.
func (arch) Decode(at records.Addr, t isa.Text, scratch uint64) isa.Insn {
	word := uint32(t)
	switch {
	case word&uint32(JalrMask) == uint32(Jalr):
		to := scratch + uint64(int64(int32(word)>>20))
		return isa.Insn{Kind: isa.Call, Len: InsnLen, Target: records.Addr(to &^ 1)}
	case word == uint32(Nop4):
		return isa.Insn{Kind: isa.Nop, Len: InsnLen}
	case word&uint32(AuipcMask) == uint32(Auipc):
		up := records.Addr(int32(word &^ uint32(AuipcMask)))
		return isa.Insn{Kind: isa.Scratch, Len: InsnLen, Target: at + up}
	case word == uint32(Ebreak):
		return isa.Insn{Kind: isa.Breakpoint, Len: InsnLen}
	case uint16(word) == uint16(Nop2):
		return isa.Insn{Kind: isa.Nop, Len: ParcelLen}
	case uint16(word) == uint16(CEbreak):
		return isa.Insn{Kind: isa.Breakpoint, Len: ParcelLen}
	}
	return isa.Insn{}
}
