package cpus

import (
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Code is what never changes while the machine runs: the instruction set and
// where the sites are. CPUs read it freely.
type Code struct {
	Arch   isa.Arch
	Traits isa.Traits
	Layout isa.Layout
	Fetch  Fetch
	Sites  []records.Addr // first patchable byte of each site
	Len    int            // patchable bytes of a site
	Entry  records.Addr   // ftrace_caller: what sites call
	// NoRecheck makes a breakpoint without an entry fatal at once, as Linux
	// does since 6.3 (8e791f7eba4c); before, the handler looked whether the
	// breakpoint had gone meanwhile and went back.
	NoRecheck bool
}

// Insns is how many instructions a site is made of: 1, or 2 for a pair.
func (c *Code) Insns() int { return c.Len / c.Traits.FetchLen }

// Literals tells whether sites have a literal that names their ops; otherwise
// the call itself does. Pairs are from before there were literals.
func (c *Code) Literals() bool { return c.Traits.CallOps && c.Insns() == 1 }

// Handler answers a CPU that ran into a breakpoint.
type Handler interface {
	// Enter takes a reference on what is published; false when nothing is.
	Enter(cpu int) bool
	// Find looks the address up and tells which instruction to act as.
	Find(at records.Addr, p *Probe) (isa.Insn, bool)
	// Leave gives the reference back.
	Leave(cpu int)
}

// Probe is one CPU's scratch for lookups; it lets every index count its
// comparisons without sharing a counter. Whoever counts over many lookups sets it
// back to 0 in between.
type Probe struct{ Comparisons int32 }

// Ticket names one interrupt request that a CPU has taken and must answer.
type Ticket int32

// Taken is what a CPU finds in its interrupt box.
type Taken struct {
	Ticket Ticket
	Cause  Cause
}

// Outcome is what became of a call through an ops.
type Outcome uint8

// The outcomes.
const (
	CalledTracer Outcome = iota
	CalledNobody         // nop_ops: the site is disabled, the branch was stale
	CalledFreed          // the ops had been released
	CalledWild           // no ops has that address
)

// Shared is everything that CPUs share. Each method is one access, the unit of
// interleaving: what a CPU does between two of them is its own business.
type Shared interface {
	Handler

	// Window and Peek read text: as a fetch may see it, and as data.
	Window(site int, synced Seq, buf []Version) ([]Version, Promise)
	Peek(site int) isa.Text
	// Seq is what a CPU that synchronises now has seen.
	Seq() Seq
	// Settled re-reads a site's promise.
	Settled(site int) Promise

	// Literal reads the pointer to a site's ops; CallOps calls through one.
	Literal(site int) uint64
	CallOps(ops uint64) Outcome

	// Pending tells whether an interrupt waits that a CPU with interrupts
	// masked or not would take; Take takes it; Answer tells its sender.
	Pending(cpu int, masked bool) bool
	Take(cpu int, masked bool) (Taken, bool)
	Answer(t Ticket)

	// Arrive says that the CPU stands still for stop_machine; Resumed tells
	// whether it may go on.
	Arrive(cpu int)
	Resumed(cpu int) bool
}
