// SPDX-License-Identifier: Apache-2.0

// Package arm64 is the A64 instruction set as live patching sees it: one
// aligned word per site that toggles between NOP and BL while other CPUs run
// it, and an aligned eight-byte literal before the function that names the
// site's ops (CALL_OPS).
//
// Layout of a function, "rec" being the record's address (Linux 6.3 and later;
// before, and where CALL_OPS is not configured, the literal is missing):
//
//	              without BTI   with BTI
//	literal       rec-12        rec-16     8-aligned, &ftrace_ops
//	function      rec-4         rec-8
//	BTI C                       rec-8
//	MOV X9, LR    rec-4         rec-4      written once, at boot
//	NOP or BL     rec           rec        the site
//
// Each layout has an Arch of its own: Layouts.
//
// Sources: arch/arm64/kernel/ftrace.c, arch/arm64/kernel/patching.c (Linux
// 6.18), arch/arm64/include/asm/insn.h; Arm ARM (DDI 0487) C6.2 for the
// encodings, B2.2.5 "Concurrent modification and execution of instructions".
package arm64

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Name is the name of this instruction set, here and in record tables.
const Name = "arm64"

// The words that do not depend on an address.
const (
	// Nop is the disabled site.
	Nop isa.Text = 0xD503201F

	// Brk is BRK #0. The kernel gives other numbers to its clients (4 kprobes, 5 uprobes, 0x100
	// fault, 0x400 and 0x401 kgdb, 0x800 BUG: arch/arm64/include/asm/brk-imm.h) and leaves 0 free.
	// Its ftrace never writes one: BRK is here for protocols that go through a breakpoint, which
	// B2.2.5 allows for BRK as for NOP and BL.
	Brk isa.Text = 0xD4200000
)

// Opcodes and their masks: an instruction is a BL where word&BLMask == BL.
const (
	BL      isa.Text = 0x94000000 // BL: imm26 counts words from the instruction itself
	BLMask  isa.Text = 0xFC000000
	B       isa.Text = 0x14000000 // B: likewise
	BMask   isa.Text = 0xFC000000
	BrkMask isa.Text = 0xFFE0001F // imm16 is bits 5 to 20
)

// InsnLen is the length of every instruction.
const InsnLen = 4

// Reach is how far B and BL go in either direction: -Reach to Reach-4.
const Reach = 128 << 20

// Arch is arm64 of a kernel whose own code has no BTI, which goes for every
// kernel built by GCC (CONFIG_ARM64_BTI_KERNEL depends on !CC_IS_GCC). It has
// no state.
var Arch isa.Arch = arch{layout: isa.LayoutCallOps}

// BTI is arm64 of a kernel with CONFIG_ARM64_BTI_KERNEL, whose functions may
// begin with BTI C. It differs in the records that it takes, see Site.
var BTI isa.Arch = arch{layout: isa.LayoutBTI}

// Plain is arm64 of a kernel without DYNAMIC_FTRACE_WITH_CALL_OPS: before Linux
// 6.3, with CFI, or optimised for size by GCC (arch/arm64/Kconfig). Its sites have
// no literal, and functions need not be aligned to 8 bytes.
var Plain isa.Arch = arch{layout: isa.LayoutPlain}

// Layouts are the ways in which kernels lay sites out, the usual one first.
var Layouts = []isa.Arch{Arch, BTI, Plain}

type arch struct{ layout string }

// Traits: a trap or interrupt synchronises the context on entry and return
// (Arm ARM, "Context synchronization event"), rounds are ordinary interrupts,
// and stores have to be made visible (DSB) before anything may rely on them.
// No round follows a literal or the whole update: hardware broadcasts the cache
// maintenance that goes with each store (caches_clean_inval_pou), and old code may
// stay in use for a while.
func (a arch) Traits() isa.Traits {
	return isa.Traits{
		Name:           Name,
		Layout:         a.layout,
		FetchLen:       InsnLen,
		BreakpointLen:  InsnLen,
		Breakpoint:     "brk",
		Resync:         "isb",
		CallOps:        a.layout != isa.LayoutPlain,
		TrapSyncs:      true,
		InterruptSyncs: true,
		StoresBuffered: true,

		// kick_all_cpus_sync, kernel/smp.c: smp_call_function leaves the sender out. The isb
		// behind its own stores is in caches_clean_inval_pou (arch/arm64/mm/cache.S).
		RoundSparesSelf: true,
		InterruptRow:    "IPI1",
		InterruptName:   "Function call interrupts",
		StopRow:         "IPI0",
		StopName:        "Rescheduling interrupts",
	}
}

// Site is the word at rec; its literal is the aligned doubleword that the
// kernel finds from there, ALIGN_DOWN(rec-12, 8) (ftrace_rec_update_ops).
//
// The kernel looks at the address that the compiler listed, that of the
// literal, and skips the record when it is not a multiple of 8
// (ftrace_call_adjust, "Misaligned patch-site"). A record's own address tells
// less. It is 4 past a multiple of 8 in a function without BTI, as in all
// 48,048 records of Debian's 6.12. A multiple of 8 means either a misaligned
// function or one that begins with BTI C, so Arch, which knows of no BTI,
// refuses it: the align-down would name a word that is not the literal. BTI
// takes it, and so does Plain, which has no literal. Other addresses are no
// instruction's.
func (a arch) Site(rec records.Addr, _ isa.Layout) (isa.Site, error) {
	if rec%InsnLen != 0 {
		return isa.Site{}, &isa.MisalignedError{Arch: Name, Record: rec, What: "site", Align: InsnLen}
	}
	switch {
	case a.layout == isa.LayoutPlain:
		return isa.Site{Addr: rec, Len: InsnLen}, nil
	case rec%8 == 0 && a.layout != isa.LayoutBTI:
		return isa.Site{}, &isa.MisalignedError{Arch: Name, Record: rec, What: "literal", Align: 8}
	}
	return isa.Site{Addr: rec, Literal: Literal(rec), Len: InsnLen}, nil
}

// Literal is the address of the literal of the site at rec. ftrace_caller
// computes the same from the return address: (LR & ^7) - 16.
func Literal(rec records.Addr) records.Addr { return (rec - 12) &^ 7 }

// Disabled is Nop.
func (arch) Disabled(isa.Site) isa.Text { return Nop }

// Enabled is BL to the target, or to the entry where the target is out of
// reach (it finds the target through the literal's ops), or to the module's
// PLT slot for the entry, as ftrace_find_callable_addr chooses. A site without a
// literal calls the entry for the entry alone. A destination that is not
// word-aligned is no instruction and counts as out of reach.
func (a arch) Enabled(s isa.Site, d isa.Destination) (isa.Text, isa.Via, error) {
	if t, ok := Call(s.Addr, d.Target); ok {
		return t, isa.Direct, nil
	}
	if a.layout == isa.LayoutPlain && d.Target != d.Entry { // the entry could not tell what is wanted
		return 0, isa.Direct, &isa.ReachError{Arch: Name, Site: s.Addr, To: d.Target, Reach: Reach}
	}
	if t, ok := Call(s.Addr, d.Entry); ok {
		return t, isa.ThroughEntry, nil
	}
	if d.PLT != 0 {
		if t, ok := Call(s.Addr, d.PLT); ok {
			return t, isa.ThroughPLT, nil
		}
	}
	return 0, isa.Direct, &isa.ReachError{Arch: Name, Site: s.Addr, To: d.Target, Reach: Reach}
}

// Breakpoint is Brk.
func (arch) Breakpoint() isa.Text { return Brk }

// Scratch is 0: BL needs no register.
func (arch) Scratch(isa.Site, records.Addr) uint64 { return 0 }

// Decode knows NOP, BL, B and BRK with any number; only the first four bytes
// of t count. MOV X9, LR is Unknown like the rest: it is beside the site, not
// in it.
func (arch) Decode(at records.Addr, t isa.Text, _ uint64) isa.Insn {
	t &= 0xFFFFFFFF
	switch {
	case t == Nop:
		return isa.Insn{Kind: isa.Nop, Len: InsnLen}
	case t&BLMask == BL:
		return isa.Insn{Kind: isa.Call, Len: InsnLen, Target: imm26(at, t)}
	case t&BMask == B:
		return isa.Insn{Kind: isa.Jump, Len: InsnLen, Target: imm26(at, t)}
	case t&BrkMask == Brk:
		return isa.Insn{Kind: isa.Breakpoint, Len: InsnLen}
	}
	return isa.Insn{}
}

// Grain is 4, the word that is one instruction. From an address inside a word,
// where no instruction begins, it is what is left of the word.
func (arch) Grain(at records.Addr) int { return InsnLen - int(at%InsnLen) }

// listed are the instructions that may replace each other while other CPUs execute them:
// Arm ARM (DDI 0487) B2.2.5, "Concurrent modification and execution of instructions".
var listed = []struct{ mask, opcode isa.Text }{
	{BMask, B},
	{BLMask, BL},
	{0xFF000010, 0x54000000}, // B.cond
	{0x7E000000, 0x34000000}, // CBZ, CBNZ
	{0x7E000000, 0x36000000}, // TBZ, TBNZ
	{0xFFE0001F, 0xD4000001}, // SVC
	{0xFFE0001F, 0xD4000002}, // HVC
	{0xFFE0001F, 0xD4000003}, // SMC
	{BrkMask, Brk},
	{0xFFFFF0FF, 0xD50330DF}, // ISB
	{0xFFFFFFFF, Nop},
}

// Listed tells whether an instruction is one of those that may replace each other, and be
// replaced, under a running CPU. Of any other Arm does not say what the CPU executes.
func Listed(t isa.Text) bool {
	for _, l := range listed {
		if t&l.mask == l.opcode {
			return true
		}
	}
	return false
}

// Unlisted is arm64 where plans replace other instructions than those of the list. Arm calls a
// CPU's behaviour meanwhile constrained unpredictable; here the CPU may mix bytes of the old and of
// the new instruction.
func Unlisted(a isa.Arch) isa.Arch { return unlisted{a} }

type unlisted struct{ isa.Arch }

func (unlisted) Grain(records.Addr) int                 { return 1 }
func (unlisted) AtomicStore(_ records.Addr, n int) bool { return n == 1 }

// AtomicStore is true of an aligned word (an instruction: B2.2.5, with both
// the old and the new one in its list) and of an aligned doubleword as data
// (the literal). Two instructions in one doubleword are still fetched as two.
func (arch) AtomicStore(at records.Addr, n int) bool {
	return (n == InsnLen || n == 8) && at%records.Addr(n) == 0
}

// Call encodes BL at address at; ok is false beyond Reach and for addresses
// that are not word-aligned.
func Call(at, target records.Addr) (t isa.Text, ok bool) { return branch(BL, at, target) }

// Jump encodes B at address at; ok is false as for Call.
func Jump(at, target records.Addr) (t isa.Text, ok bool) { return branch(B, at, target) }

// branch encodes B or BL (aarch64_insn_gen_branch_imm).
func branch(opcode isa.Text, at, target records.Addr) (isa.Text, bool) {
	off := int64(target - at)
	if (at|target)%InsnLen != 0 || off < -Reach || off >= Reach {
		return 0, false
	}
	return opcode | isa.Text(off>>2)&0x03FFFFFF, true
}

// imm26 is the target of a branch: the low 26 bits of t, sign-extended, in words.
func imm26(at records.Addr, t isa.Text) records.Addr {
	return at + records.Addr(int32(uint32(t)<<6)>>4)
}
