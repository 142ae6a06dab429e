// SPDX-License-Identifier: Apache-2.0

// Package isa describes an instruction set as far as live patching needs it: how
// a site looks when disabled, enabled or behind a breakpoint, what a fetched
// instruction means, how far a call reaches, how many bytes one store replaces at
// once, and which events make a CPU fetch afresh.
//
// The implementations are x86_64, arm64 and riscv64, beside this package.
// Nothing above cpus/ asks which of them it has: it reads Traits.
package isa

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// Text is up to eight bytes of instruction text: byte i of memory is bits
// 8i to 8i+7, so that it is the value a little-endian load would give.
type Text uint64

// Slice returns the n bytes from off on, shifted down to byte 0.
func (t Text) Slice(off, n int) Text { return t >> (8 * off) & Mask(n) }

// Splice returns t with its n bytes from off on replaced by those of s.
func (t Text) Splice(off, n int, s Text) Text {
	m := Mask(n) << (8 * off)
	return t&^m | s<<(8*off)&m
}

// Bytes returns the first n bytes in memory order.
func (t Text) Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(t >> (8 * i))
	}
	return b
}

// Format prints the first n bytes as hex pairs, as disassemblers do.
func (t Text) Format(n int) string { return fmt.Sprintf("% x", t.Bytes(n)) }

// TextOf packs up to eight bytes.
func TextOf(b ...byte) Text {
	var t Text
	for i, x := range b {
		t |= Text(x) << (8 * i)
	}
	return t
}

// Mask covers the first n bytes.
func Mask(n int) Text {
	if n >= 8 {
		return ^Text(0)
	}
	return 1<<(8*n) - 1
}

// InsnKind is what an instruction does, as far as patching is concerned.
type InsnKind uint8

// The kinds. Unknown is whatever no protocol ever writes into a site.
const (
	Unknown    InsnKind = iota
	Nop                 // goes on behind itself
	Call                // calls Target
	Jump                // jumps to Target
	Breakpoint          // traps
	Scratch             // computes Target into the scratch register (auipc t0)
	Return              // returns to the function's caller
	Plain               // the program's own: does what it does, and goes on behind itself
)

var kindNames = [...]string{"unknown", "nop", "call", "jump", "breakpoint", "scratch", "return", "plain"}

func (k InsnKind) String() string { return kindNames[k] }

// LeadsAway tells whether the CPU goes on elsewhere than behind such an instruction.
func (k InsnKind) LeadsAway() bool {
	switch k {
	case Call, Jump, Breakpoint, Return:
		return true
	}
	return false
}

// Insn is one decoded instruction.
type Insn struct {
	Kind   InsnKind
	Len    uint8        // bytes; 0 when Unknown
	Target records.Addr // of Call and Jump; the computed value of Scratch
}

func (i Insn) String() string {
	switch i.Kind {
	case Call, Jump:
		return i.Kind.String() + " " + i.Target.String()
	}
	return i.Kind.String()
}

// Layout chooses between the two shapes that sites have had. Instruction sets
// that only ever had one ignore it.
type Layout uint8

const (
	// Word: the patchable part is one instruction (all current kernels).
	Word Layout = iota
	// Pair: the patchable part is two instructions that must be executed
	// together (riscv64 before Linux 6.16: auipc t0, jalr t0).
	Pair
)

// Site is where the patchable bytes of one record are.
type Site struct {
	Addr    records.Addr // first patchable byte
	Literal records.Addr // 8-byte pointer to the ops, 0 where there is none
	Len     uint8        // patchable bytes: 4 or 8; on x86_64 1, 2, 5 or 6
}

// Via says how an enabled site gets to its target.
type Via uint8

const (
	Direct       Via = iota // the instruction reaches the target itself
	ThroughEntry            // out of reach: calls the common entry, which finds the target through the ops
	ThroughPLT              // the common entry is out of reach too: calls the module's PLT slot for it
)

// Destination is the function that an enabled site is to call, and the ways round when it is out of
// reach.
type Destination struct {
	Target records.Addr // the wanted trampoline
	Entry  records.Addr // ftrace_caller, the entry common to all sites
	PLT    records.Addr // the site's module's PLT slot for Entry, 0 if it has none
	Jump   bool         // Target returns for the site, which jumps there instead of calling (x86_64)
}

// The layouts that kernels are built with, by what their configuration calls it.
// An instruction set has one Arch for each that it knows.
const (
	LayoutPlain   = "plain"    // the site alone: x86_64, and kernels without CALL_OPS
	LayoutCallOps = "call-ops" // DYNAMIC_FTRACE_WITH_CALL_OPS: a literal before the function names the site's ops
	LayoutBTI     = "bti"      // the same with ARM64_BTI_KERNEL: functions may begin with a landing pad
)

// Traits are the facts about an instruction set that protocols, CPUs and
// reports need. See the implementations for the sources.
type Traits struct {
	Name          string
	Layout        string // how its sites are laid out: LayoutPlain and its neighbours
	FetchLen      int    // bytes of one fetched instruction of a site
	BreakpointLen int    // bytes a breakpoint overwrites
	Breakpoint    string // its mnemonic: int3, brk, ebreak
	Resync        string // what makes a CPU fetch afresh: sync_core, isb, fence.i

	CallOps bool // sites have a literal that names their ops (CALL_OPS)

	// The function tracer's further entries there.
	RegsEntry       bool // a second entry that saves all registers (DYNAMIC_FTRACE_WITH_REGS)
	OpsTrampolines  bool // an ops gets a trampoline of its own (arch_ftrace_update_trampoline)
	SingleDirectOps bool // one ops for all direct trampolines (HAVE_SINGLE_FTRACE_DIRECT_OPS, Linux 7.0)
	VerifyFirst     bool // all sites are compared before the first is written (ftrace_replace_code)

	TrapSyncs       bool // taking and leaving a trap makes the CPU fetch afresh
	InterruptSyncs  bool // so does any interrupt
	MaskedRounds    bool // rounds reach CPUs that have interrupts masked (remote fences by firmware)
	FirmwareRounds  bool // the firmware counts rounds, on the sender as well, and /proc/interrupts does not
	RoundSparesSelf bool // a round's sender does not fetch afresh itself; elsewhere it does
	StoresBuffered  bool // a store needs a fence before a round may rely on it

	// Interrupts that the current kernel's word-by-word update sends on top of the stores;
	// meaningful where CallOps is set.
	RoundPerLiteral bool // one round after each literal
	RoundAtEnd      bool // one round when all words are written

	// RestsOn is the rule that makes a fetch come before data that is read behind it, where the
	// architecture's base model does not; "" where it does. Verdicts on plans that change both
	// rest on it.
	RestsOn string

	InterruptRow  string // row of /proc/interrupts that a round shows up in
	InterruptName string // and its description
	StopRow       string // row that the waking of stoppers shows up in
	StopName      string // and its description
}

// Arch is one instruction set.
type Arch interface {
	Traits() Traits

	// Site finds the patchable bytes of the record at rec. It fails with a
	// *MisalignedError where the kernel would refuse the record.
	Site(rec records.Addr, layout Layout) (Site, error)

	// Disabled is the text of a site that calls no tracer.
	Disabled(s Site) Text

	// Enabled is the text of a site that calls d, and the way it takes. It
	// fails with a *ReachError when no way leads there.
	Enabled(s Site, d Destination) (Text, Via, error)

	// Breakpoint is the text that traps, Traits().BreakpointLen bytes.
	Breakpoint() Text

	// Scratch is what the scratch register holds when control arrives at the
	// site: the fixed auipc before a riscv64 Word site has run. 0 elsewhere.
	Scratch(s Site, entry records.Addr) uint64

	// Decode reads the instruction at address at; scratch is the scratch
	// register before it.
	Decode(at records.Addr, t Text, scratch uint64) Insn

	// Grain is how many bytes at address at a CPU fetches indivisibly: text
	// being rewritten can mix at these borders and nowhere else.
	Grain(at records.Addr) int

	// AtomicStore tells whether one store can replace n bytes at address at
	// so that no CPU fetches a part of it.
	AtomicStore(at records.Addr, n int) bool
}

// MisalignedError says that a record's site or literal is not where an atomic
// store can replace it; kernels skip such records.
type MisalignedError struct {
	Arch   string
	Record records.Addr
	What   string // "site" or "literal"
	Align  int    // bytes
}

func (e *MisalignedError) Error() string {
	return fmt.Sprintf("%s: %s of record %s is not aligned to %d bytes", e.Arch, e.What, e.Record, e.Align)
}

// ReachError says that a site cannot call its destination.
type ReachError struct {
	Arch  string
	Site  records.Addr
	To    records.Addr
	Reach uint64 // bytes in either direction
}

func (e *ReachError) Error() string {
	return fmt.Sprintf("%s: site %s cannot reach %s: beyond %d MiB and no PLT slot in reach", e.Arch, e.Site, e.To,
		e.Reach>>20)
}
