// SPDX-License-Identifier: Apache-2.0

// Package riscv64 is 64-bit RISC-V as live patching sees it. A call to any
// place in the kernel takes two instructions, auipc t0 and jalr t0, and the
// two layouts differ in how they deal with that:
//
//   - isa.Word (Linux 6.16 and later): the auipc is fixed when the function is
//     loaded and only the aligned word behind it toggles, between a nop and
//     the jalr. Other harts may run it meanwhile. An eight-byte literal before
//     the function names the site's ops (CALL_OPS), unless that is left out.
//   - isa.Pair (Linux 6.3 to 6.15): both toggle together, between two nops and
//     the pair, so no hart may be between them.
//
// With "rec" the record's address:
//
//	            Word                     Pair
//	rec-12      literal, 8-aligned
//	rec-4       auipc t0 (fixed)         nop or auipc t0
//	rec         nop or jalr t0           nop or jalr t0
//
// Sources: arch/riscv/kernel/ftrace.c and arch/riscv/include/asm/ftrace.h
// (Linux 7.1; 6.6 for the pair), arch/riscv/kernel/patch.c,
// Documentation/arch/riscv/cmodx.rst; The RISC-V Instruction Set Manual vol. I
// (AUIPC, JALR, EBREAK, C.NOP, C.EBREAK, Zifencei, Ziccif).
package riscv64

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Name is the name of this instruction set, here and in record tables.
const Name = "riscv64"

// The row of the remote fences that a hart has received. Fences by firmware
// interrupt harts in M-mode and do not appear in /proc/interrupts, whose IPI1
// ("Function call interrupts") counts only the other kind; what counts them is
// the SBI PMU's firmware event 9 (SBI_PMU_FW_FENCE_I_RECVD, asm/sbi.h). It counts
// on the hart that asks as well: flush_icache_all asks for a fence on all harts
// (sbi_remote_fence_i(NULL), arch/riscv/mm/cacheflush.c), and the firmware treats
// the caller's like the others (sbi_tlb_local_fence_i, lib/sbi/sbi_tlb.c, OpenSBI).
// Booted kernels show so: kernels/ledger/data/measured.csv.gz.
const (
	FenceRow  = "FW_FENCE_I_RECVD"
	FenceName = "Remote fence.i received (firmware counter)"
)

// Arch is riscv64 with remote fences by SBI firmware. It has no state.
var Arch isa.Arch = arch{layout: isa.LayoutCallOps}

// Plain is riscv64 of a kernel without DYNAMIC_FTRACE_WITH_CALL_OPS, as with CFI
// (arch/riscv/Kconfig, Linux 6.16). Its sites have no literal, and functions that
// hold compressed instructions are aligned to 4 bytes (FUNCTION_ALIGNMENT_4B).
var Plain isa.Arch = arch{layout: isa.LayoutPlain}

// Layouts are the ways in which kernels lay sites out, the usual one first.
var Layouts = []isa.Arch{Arch, Plain}

type arch struct{ layout string }

// Traits: only fence.i on the hart itself makes it fetch afresh; traps and
// interrupts do not (Zifencei). Rounds are SBI remote fences, which
// firmware takes in M-mode whether or not the kernel masks its interrupts; the
// stores before one need a fence (RISCV_FENCE(w, o), flush_icache_all).
//
// The kernel's update goes through patch_text_nosync for each literal, which
// ends in flush_icache_all, and calls that once more when all words are
// written (ftrace_rec_set_ops, arch_ftrace_update_code; Linux 7.1).
func (a arch) Traits() isa.Traits {
	return isa.Traits{
		Name:            Name,
		Layout:          a.layout,
		FetchLen:        InsnLen,
		BreakpointLen:   InsnLen,
		Breakpoint:      "ebreak",
		Resync:          "fence.i",
		CallOps:         a.layout == isa.LayoutCallOps,
		MaskedRounds:    true,
		FirmwareRounds:  true,
		StoresBuffered:  true,
		RoundPerLiteral: true,
		RoundAtEnd:      true,
		InterruptRow:    FenceRow,
		InterruptName:   FenceName,

		// rems-project/litmus-tests-riscv-ifetch, June 2026: kinds-*.txt
		RestsOn: "MP.FR+fence+po being forbidden, which Ziccid or in-order decode forbids " +
			"and the base model (Ziccif alone) allows",
		StopRow:  "IPI0",
		StopName: "Rescheduling interrupts",
	}
}

// Site finds the jalr's slot (Word) or the pair (Pair).
//
// Records are those of current kernels in both layouts: the address of the
// jalr. A kernel with pairs lists the auipc, four bytes before it; asking for
// one convention lets the same table be run under either layout.
//
// In a Word site the function is 8-aligned and the slot therefore 4 past a
// multiple of 8, as in all 41,845 records of a 7.2 kernel. The kernel relies
// on the compiler for that (FUNCTION_ALIGNMENT_8B); elsewhere ALIGN_DOWN(rec-12,
// 8), by which update and ftrace_caller find the literal, names another word,
// so such records are refused. Plain has no literal and takes them. A Pair has
// none either and begins wherever a compressed instruction may: at any multiple of
// 2.
func (a arch) Site(rec records.Addr, layout isa.Layout) (isa.Site, error) {
	if layout == isa.Pair {
		if rec%2 != 0 {
			return isa.Site{}, misaligned(rec, "site", 2)
		}
		return isa.Site{Addr: rec - InsnLen, Len: PairLen}, nil
	}
	if a.layout == isa.LayoutPlain && rec%2 == 0 {
		return isa.Site{Addr: rec, Len: InsnLen}, nil
	}
	if rec%InsnLen != 0 {
		return isa.Site{}, misaligned(rec, "site", InsnLen)
	}
	if rec%8 != InsnLen {
		return isa.Site{}, misaligned(rec, "literal", 8)
	}
	return isa.Site{Addr: rec, Literal: Literal(rec), Len: InsnLen}, nil
}

func misaligned(rec records.Addr, what string, align int) error {
	return &isa.MisalignedError{Arch: Name, Record: rec, What: what, Align: align}
}

// Literal is the address of the literal of the Word site at rec. ftrace_caller
// computes it from its return address in t0: t0 - 16.
func Literal(rec records.Addr) records.Addr { return (rec - 12) &^ 7 }

// Disabled is a nop in every instruction of the site.
func (arch) Disabled(s isa.Site) isa.Text {
	if s.Len == PairLen {
		return Nop4 | Nop4<<32
	}
	return Nop4
}

// Enabled is the jalr of a Word site or both instructions of a Pair.
//
// A Word's auipc is fixed for the entry, so the jalr calls the target only
// within JalrRange of the entry; everything farther is left to the entry,
// which finds the target through the literal's ops (ftrace_make_call; from call
// to call, ftrace_modify_call writes the entry's jalr whatever the target).
// Where the auipc cannot be for the entry, it is for the PLT slot. A site without a
// literal calls the entry for the entry alone.
//
// A Pair carries its own auipc and calls the target or fails: it has no
// literal that could tell the entry which target is meant.
func (a arch) Enabled(s isa.Site, d isa.Destination) (isa.Text, isa.Via, error) {
	if s.Len == PairLen {
		hi, lo, ok := Split(s.Addr, d.Target)
		if !ok {
			return 0, isa.Direct, unreachable(s, d.Target)
		}
		return AuipcT0(hi) | JalrT0(lo)<<32, isa.Direct, nil
	}
	return a.enabledWord(s, d)
}

func (a arch) enabledWord(s isa.Site, d isa.Destination) (isa.Text, isa.Via, error) {
	auipc := s.Addr - InsnLen
	hi, lo, ok := Split(auipc, d.Entry)
	if !ok {
		if d.PLT != 0 {
			if _, lo, ok = Split(auipc, d.PLT); ok {
				return JalrT0(lo), isa.ThroughPLT, nil
			}
		}
		return 0, isa.Direct, unreachable(s, d.Entry)
	}
	// The kernel calls any target within JalrRange of the entry directly and
	// encodes the low 12 bits of target-auipc. That is right only where both
	// offsets round to the same upper part: otherwise the fixed auipc is for
	// another 4 KiB, and the branch lands 4096 bytes off. No kernel has met it
	// (trampolines are allocated far from ftrace_caller), but a model may put
	// one there: hence the upper parts are compared, and a target that the jalr
	// would miss goes through the entry like any distant one.
	off := int64(d.Target - d.Entry)
	near := -JalrRange <= off && off <= JalrRange
	if targetHi, targetLo, ok := Split(auipc, d.Target); ok && near && targetHi == hi {
		return JalrT0(targetLo), isa.Direct, nil
	}
	if a.layout == isa.LayoutPlain && d.Target != d.Entry { // the entry could not tell what is wanted
		return 0, isa.Direct, unreachable(s, d.Target)
	}
	return JalrT0(lo), isa.ThroughEntry, nil
}

func unreachable(s isa.Site, to records.Addr) error {
	return &isa.ReachError{Arch: Name, Site: s.Addr, To: to, Reach: Reach}
}

// Breakpoint is Ebreak.
func (arch) Breakpoint() isa.Text { return Ebreak }

// Scratch is what a Word's fixed auipc leaves in t0. Pass the address that the
// auipc is for: Destination.Entry or, where Enabled says ThroughPLT,
// Destination.PLT. For one out of reach it is what the truncated auipc would
// leave, which is another address. 0 for a Pair, which sets t0 itself.
func (arch) Scratch(s isa.Site, entry records.Addr) uint64 {
	if s.Len == PairLen {
		return 0
	}
	auipc := s.Addr - InsnLen
	return uint64(auipc) + uint64(upper(int64(entry-auipc)))
}

// Grain is 4 at multiples of 4 (Ziccif: aligned fetches of up to 4 bytes are
// atomic) and 2, one parcel, between them.
func (arch) Grain(at records.Addr) int {
	switch {
	case at%4 == 0:
		return 4
	case at%2 == 0:
		return 2
	}
	return 1 // inside a parcel, where no instruction begins
}

// AtomicStore is true of an aligned parcel, word (Ziccif; cmodx.rst) and, as
// data, doubleword: the literal. Two instructions in an aligned doubleword are
// stored at once but fetched as two: Grain tells.
func (arch) AtomicStore(at records.Addr, n int) bool {
	return (n == 2 || n == 4 || n == 8) && at%records.Addr(n) == 0
}

// The instructions that do not depend on an address.
const (
	Nop4 isa.Text = 0x00000013 // addi x0, x0, 0: the disabled site
	Nop2 isa.Text = 0x0001     // c.nop; under RVC the compiler fills sites with it

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
