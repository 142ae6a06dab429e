// SPDX-License-Identifier: Apache-2.0

// Package x86_64 is the instruction set of 64-bit x86 as live patching sees
// it: a five-byte site at any address, a rel32 call, and int3, the one byte
// that may replace another under a running CPU.
//
// Sources: arch/x86/kernel/alternative.c and arch/x86/kernel/ftrace.c (Linux
// 6.18), arch/x86/include/asm/text-patching.h; Intel SDM vol. 2 (CALL, JMP,
// INT3, NOP) and vol. 3A "Handling Self- and Cross-Modifying Code"; AMD APM
// vol. 2, 7.6.1.
package x86_64

import (
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Name is the name of this instruction set, here and in record tables.
const Name = "x86_64"

// The texts that do not depend on an address.
const (
	// Nop5 is 0F 1F 44 00 00, nopl 0(%rax,%rax,1): the disabled site
	// (x86_nops[5], arch/x86/include/asm/nops.h).
	Nop5 isa.Text = 0x00_00_44_1F_0F

	// Nop2 is 66 90, data16 nop: a disabled two-byte static key.
	Nop2 isa.Text = 0x90_66

	// Nop1 is 90, the disabled one-byte site.
	Nop1 isa.Text = 0x90

	// Ret is C3: a site that returns (static calls that have no target).
	Ret isa.Text = 0xC3

	// Int3 is CC, the one-byte breakpoint.
	Int3 isa.Text = 0xCC

	// Invalid is 06, no instruction in 64-bit mode: who comes to it traps (#UD). Patchers of
	// user space put it where they want a SIGILL.
	Invalid isa.Text = 0x06
)

// plain are instructions of programs; a patcher replaces several of them by one. Each has
// its first bytes, and its length with operands. Longer ones come first.
var plain = []struct {
	text isa.Text
	n    int // of the bytes that tell it
	len  uint8
}{
	{0x24648D48, 4, 5}, // lea disp8(%rsp),%rsp
	{0xE58948, 3, 3},   // mov %rsp,%rbp
	{0xEC8348, 3, 4},   // sub imm8,%rsp
	{0xFF8B, 2, 2},     // mov %edi,%edi
	{0x050F, 2, 2},     // syscall
	{0xC031, 2, 2},     // xor %eax,%eax
	{0x55, 1, 1},       // push %rbp
	{0xB8, 1, 5},       // mov imm32,%eax
}

// nop8 is 0f 1f 84, nopl disp32(base,index,scale): a nop whatever the five bytes behind it are
// (x86_nops[8], arch/x86/include/asm/nops.h; that of ten bytes has 66 2e before it).
const (
	nop8 = isa.Text(0x841F0F)
	// Nop8Len is its length in bytes.
	Nop8Len = 8
)

// indirect is ff 24 25, jmp *disp32: through a pointer at an absolute address.
const (
	indirect = isa.Text(0x2524FF)
	// IndirectLen is its length in bytes.
	IndirectLen = 7
)

// The first bytes of the branches that the text poker writes or emulates
// (CALL_INSN_OPCODE and its neighbours, asm/text-patching.h).
const (
	CallOpcode  = 0xE8 // call rel32, 5 bytes
	JumpOpcode  = 0xE9 // jmp rel32, 5 bytes
	ShortOpcode = 0xEB // jmp rel8, 2 bytes
	JeOpcode    = 0x74 // je rel8, 2 bytes; other conditions are 70 to 7f
	Escape      = 0x0F // je rel32 is 0f 84, 6 bytes; other conditions are 80 to 8f
	JeNear      = 0x84
)

// The lengths of the instructions above.
const (
	SiteLen  = 5 // MCOUNT_INSN_SIZE; nop, call and jmp rel32
	ShortLen = 2 // nop, jmp rel8 and jcc rel8
	JccLen   = 6 // jcc rel32
	Int3Len  = 1 // and nop and ret
)

// Lengths are those that a patched site can have (text_poke_loc, with the cases of
// smp_text_poke_int3_handler, arch/x86/kernel/alternative.c, Linux 6.18), that of
// ftrace's sites first.
var Lengths = []int{SiteLen, Int3Len, ShortLen, JccLen}

// Reach is how far rel32 goes in either direction, counted from the end of the
// instruction: -Reach to Reach-1. The kernel never comes near: kernel text,
// modules and trampolines share 2 GiB (Documentation/arch/x86/x86_64/mm.rst).
const Reach = 1 << 31

// Arch is x86_64 with the sites of ftrace.
var Arch isa.Arch = arch{SiteLen}

// Sized is x86_64 with sites of one of the Lengths, false for others: 5 bytes toggle
// between a nop and a call; 1 byte between a nop and ret; 2 bytes between a nop and
// jmp rel8, as static keys do; 6 bytes between je to the next instruction and je to
// the target, as conditional tail calls of static calls do (__static_call_transform,
// arch/x86/kernel/static_call.c).
func Sized(n int) (isa.Arch, bool) { return arch{n}, slices.Contains(Lengths, n) }

// Region is x86_64 with sites of n bytes, 1 to 8, that hold whatever a program has
// there: several instructions, perhaps.
func Region(n int) (isa.Arch, bool) { return arch{n}, 1 <= n && n <= 8 }

type arch struct{ len int }

// Traits are those of the weakest promises of both vendors.
//
// Rounds are interrupts and do not reach a CPU that masks them; interrupt return and the handler's
// sync_core serialise the CPU (smp_text_poke_sync_each_cpu). Stores need no fence before a round:
// memory is TSO, and the poker reloads CR3, which is serialising, before it sends (__text_poke).
func (a arch) Traits() isa.Traits {
	return isa.Traits{
		Name:            Name,
		Layout:          isa.LayoutPlain,
		FetchLen:        a.len,
		BreakpointLen:   Int3Len,
		Breakpoint:      "int3",
		Resync:          "sync_core",
		RegsEntry:       true,
		OpsTrampolines:  true,
		SingleDirectOps: true,
		VerifyFirst:     true,
		TrapSyncs:       true,
		InterruptSyncs:  true,
		InterruptRow:    "CAL",
		InterruptName:   "Function call interrupts",
		StopRow:         "RES",
		StopName:        "Rescheduling interrupts",
	}
}

// Site is the bytes at the record itself: no address is wrong, since no store is
// relied upon to replace more than one byte at once. There was only ever one
// layout.
func (a arch) Site(rec records.Addr, _ isa.Layout) (isa.Site, error) {
	return isa.Site{Addr: rec, Len: uint8(a.len)}, nil
}

// Disabled is a nop of the site's length, or for six bytes a je to the next
// instruction.
func (arch) Disabled(s isa.Site) isa.Text {
	switch s.Len {
	case Int3Len:
		return Nop1
	case ShortLen:
		return Nop2
	case JccLen:
		return Escape | JeNear<<8
	}
	return Nop5
}

// Enabled is a branch to the target by which sites of that length go, or a *isa.ReachError; ret
// goes to no target. There is no way round: without a literal at the site the entry could not tell
// which of its callers wants which target.
//
// A site of five bytes jumps where the trampoline returns for it, which the kernel
// marks by the lowest bit of its address (ftrace_is_jmp, include/linux/ftrace.h,
// DYNAMIC_FTRACE_WITH_JMP, Linux 6.19).
func (arch) Enabled(s isa.Site, d isa.Destination) (isa.Text, isa.Via, error) {
	var t isa.Text
	var ok bool
	switch {
	case s.Len == Int3Len:
		t, ok = Ret, true
	case s.Len == ShortLen:
		t, ok = Short(s.Addr, d.Target)
	case s.Len == JccLen:
		t, ok = Je(s.Addr, d.Target)
	case d.Jump:
		t, ok = Jump(s.Addr, d.Target)
	default:
		t, ok = Call(s.Addr, d.Target)
	}
	if !ok {
		return 0, isa.Direct, &isa.ReachError{Arch: Name, Site: s.Addr, To: d.Target, Reach: Reach}
	}
	return t, isa.Direct, nil
}

// Breakpoint is Int3.
func (arch) Breakpoint() isa.Text { return Int3 }

// Scratch is 0: the call needs no register.
func (arch) Scratch(isa.Site, records.Addr) uint64 { return 0 }

// Decode knows the instructions that a site can hold: nops, call rel32, jmp and jcc
// of either length, ret and int3. Only as many bytes of t count as they have. A
// conditional jump is a Jump to its target: which way it goes is not modelled.
// Some instructions of programs are Plain. Everything else is Unknown, also where it
// would do the same, as a call with a prefix: no patcher writes it.
func (arch) Decode(at records.Addr, t isa.Text, _ uint64) isa.Insn {
	if insn := branches(at, t); insn.Kind != isa.Unknown {
		return insn
	}
	if t.Slice(0, 3) == indirect {
		return isa.Insn{Kind: isa.Jump, Len: IndirectLen, Target: records.Addr(int32(t >> 24))}
	}
	for _, p := range plain {
		if t.Slice(0, p.n) == p.text {
			return isa.Insn{Kind: isa.Plain, Len: p.len}
		}
	}
	return isa.Insn{}
}

// branches are the instructions that patchers write, with the nops in their place.
func branches(at records.Addr, t isa.Text) isa.Insn {
	switch byte(t) {
	case CallOpcode:
		return isa.Insn{Kind: isa.Call, Len: SiteLen, Target: rel32(at, t)}
	case byte(Int3), byte(Invalid):
		return isa.Insn{Kind: isa.Breakpoint, Len: Int3Len}
	case byte(Nop5 & 0xFF):
		if t&0xFF_FFFF == nop8 {
			return isa.Insn{Kind: isa.Nop, Len: Nop8Len}
		}
		if t&0xFF_FFFF_FFFF == Nop5 {
			return isa.Insn{Kind: isa.Nop, Len: SiteLen}
		}
		if byte(t>>8) == JeNear {
			return isa.Insn{Kind: isa.Jump, Len: JccLen, Target: at + JccLen + records.Addr(int32(t>>16))}
		}
	case JumpOpcode:
		return isa.Insn{Kind: isa.Jump, Len: SiteLen, Target: rel32(at, t)}
	case byte(Nop1):
		return isa.Insn{Kind: isa.Nop, Len: Int3Len}
	case byte(Ret):
		return isa.Insn{Kind: isa.Return, Len: Int3Len}
	case ShortOpcode, JeOpcode:
		to := at + ShortLen + records.Addr(int8(t>>8))
		return isa.Insn{Kind: isa.Jump, Len: ShortLen, Target: to}
	case byte(Nop2 & 0xFF):
		if t&0xFFFF == Nop2 {
			return isa.Insn{Kind: isa.Nop, Len: ShortLen}
		}
	}
	return isa.Insn{}
}

// Grain is 1: neither vendor says in which pieces text is fetched, and a site
// may cross a cache line or a page.
func (arch) Grain(records.Addr) int { return 1 }

// AtomicStore is true of single bytes alone. AMD promises that a store inside
// one naturally aligned quadword is fetched whole (APM vol. 2, 7.6.1), but
// Intel promises nothing for code that another CPU may be executing (SDM vol.
// 3A: implementation specific, and an erratum on several models), and the
// weaker vendor decides. That is why the kernel goes through int3.
func (arch) AtomicStore(_ records.Addr, n int) bool { return n == 1 }

// Call encodes call rel32 at address at; ok is false beyond Reach.
func Call(at, target records.Addr) (t isa.Text, ok bool) { return near(CallOpcode, at, target) }

// Jump encodes jmp rel32 at address at; ok is false beyond Reach. Sites hold
// one where a direct call's trampoline returns for them
// (DYNAMIC_FTRACE_WITH_JMP, Linux 6.19).
func Jump(at, target records.Addr) (t isa.Text, ok bool) { return near(JumpOpcode, at, target) }

// Short encodes jmp rel8 at address at; ok is false beyond 128 bytes.
func Short(at, target records.Addr) (t isa.Text, ok bool) {
	rel := int64(target - (at + ShortLen))
	return ShortOpcode | isa.Text(uint8(rel))<<8, rel == int64(int8(rel))
}

// Je encodes je rel32 at address at; ok is false beyond Reach.
func Je(at, target records.Addr) (t isa.Text, ok bool) {
	rel := int64(target - (at + JccLen))
	return Escape | JeNear<<8 | isa.Text(uint32(rel))<<16, rel == int64(int32(rel))
}

// near encodes a branch whose rel32 counts from the end of the instruction.
func near(opcode byte, at, target records.Addr) (isa.Text, bool) {
	// The difference wraps as the instruction pointer does.
	rel := int64(target - (at + SiteLen))
	if rel != int64(int32(rel)) {
		return 0, false
	}
	return isa.Text(opcode) | isa.Text(uint32(rel))<<8, true
}

// rel32 is the target of a near branch.
func rel32(at records.Addr, t isa.Text) records.Addr {
	return at + SiteLen + records.Addr(int32(t>>8))
}
