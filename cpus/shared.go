// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"iter"
	"slices"

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
	Lens   []uint8        // of each site, where not all have Len
	Entry  records.Addr   // ftrace_caller: what sites call
	// Path is what CPUs do at sites and in handlers. The zero Path is the
	// architecture's own, which Complete puts here.
	Path Path
	// Meant are the texts that patches lead from and to, at any site. Another text is half of a
	// change: a CPU must not execute it to its end. If there are none, every stored text counts as
	// meant.
	Meant []isa.Text
	// Always says that every site leads to a tracer before, during and after
	// every update: a call that reaches none is lost, whatever was promised.
	Always bool
	// Probed are the sites, one bit each, that hold somebody else's breakpoint
	// throughout, such as a kprobe's: a trap there that finds no entry is theirs.
	Probed uint64
	// Deaf are the CPUs, one bit each, whose interrupts do not make them fetch
	// afresh: a fault of the hardware or of its emulator.
	Deaf uint64
	// Disturbed are the CPUs, one bit each, that NMIs come to where the path has them; 0:
	// every CPU.
	Disturbed uint64
	// Stretch is the order of length, in calls, of a stretch with interrupts
	// masked. 0: maskStretch.
	Stretch int
	// Dispatch, where set, takes a call that has reached an attached ops to the site's tracers,
	// and says how the call ended. All CPUs call it at once.
	Dispatch func(cpu, site int) Outcome
}

// Several tells whether sites are longer than what one fetch reads, so that none is a
// single instruction: riscv64's pairs. Others may hold several all the same: x86_64's
// instructions have the length that they have.
func (c *Code) Several() bool { return c.Len > c.Traits.FetchLen }

// Length is how many bytes of a site can be patched.
func (c *Code) Length(site int) int {
	if c.Lens == nil {
		return c.Len
	}
	return int(c.Lens[site])
}

// Insns are the instructions that a site with such a text is executed as, from its
// first byte on, each with its offset: up to the one that leads away, or the last.
func (c *Code) Insns(site int, t isa.Text) iter.Seq2[int, isa.Insn] {
	return func(yield func(int, isa.Insn) bool) {
		var scratch uint64
		for off := 0; off < c.Length(site); {
			insn, n := c.insn(site, t.Slice(off, c.Length(site)-off), off, scratch)
			if !yield(off, insn) || insn.Kind.LeadsAway() {
				return
			}
			if off += n; insn.Kind == isa.Scratch {
				scratch = uint64(insn.Target)
			}
		}
	}
}

// insn reads the instruction at an offset of a site, of the text from there on, and
// says how many bytes it takes: an unknown one is as long as a fetch.
func (c *Code) insn(site int, t isa.Text, off int, scratch uint64) (insn isa.Insn, n int) {
	at := c.Sites[site]
	n = min(c.Traits.FetchLen, c.Len-off)
	if !c.Several() { // several compute it themselves
		scratch = c.Arch.Scratch(isa.Site{Addr: at, Len: uint8(c.Len)}, c.Entry)
	}
	insn = c.Arch.Decode(at+records.Addr(off), t.Slice(0, n), scratch)
	if insn.Len > 0 {
		n = min(n, int(insn.Len))
	}
	return insn, n
}

// Literals tells whether sites have a literal that names their ops; otherwise
// the call itself does. Pairs are from before there were literals.
func (c *Code) Literals() bool { return c.Traits.CallOps && !c.Several() }

// Named tells whether there is data that names what a site calls: its literal, its
// entry in the table of direct calls, or the ops that is loaded apart.
func (c *Code) Named() bool { return c.Literals() || c.Path.reads() }

// Act is the instruction that a trap handler acts as while a site is being changed to
// t: the one that leads away from it, or the last.
func (c *Code) Act(site int, t isa.Text) (act isa.Insn) {
	for _, act = range c.Insns(site, t) {
	}
	return act
}

// Change is a site's text before and after an update; meanwhile its breakpoint stands for both.
type Change struct{ From, To isa.Text }

// Allows tells whether a handler may act as an instruction at the site meanwhile: as the
// site did before the update, or as it does after it.
func (is Change) Allows(c *Code, site int, act isa.Insn) bool {
	from, to := c.Act(site, is.From), c.Act(site, is.To)
	return act.Kind == from.Kind && act.Target == from.Target || act.Kind == to.Kind && act.Target == to.Target
}

// Handler answers a CPU that ran into a breakpoint.
type Handler interface {
	// Enter takes a reference on the published batch; false when there is none.
	Enter(cpu int) bool
	// Find looks the address up and tells which instruction to act as.
	Find(at records.Addr, p *Probe) (isa.Insn, Found)
	// Leave gives the reference back.
	Leave(cpu int)
}

// Found is what became of a lookup.
type Found uint8

// The answers.
const (
	NoEntry  Found = iota // the address is not among those published
	Hit                   // it is
	TornDown              // nothing is published any more, though a handler had entered
)

// Probe is one CPU's scratch for lookups; it lets every index count its comparisons without sharing
// a counter. A caller that counts over many lookups sets it back to 0 in between.
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
// interleaving: other CPUs see nothing of a CPU's work between two of them.
type Shared interface {
	Handler

	// Window and Peek read text: as a fetch may see it, and as data.
	Window(site int, synced Seq, buf []Version) ([]Version, Promise)
	Peek(site int) isa.Text
	// Seq is what a CPU that synchronises now has seen.
	Seq() Seq
	// Settled re-reads a site's promise.
	Settled(site int) Promise

	// Changing is the update of a site that was begun last; like promises it is the
	// checks' bookkeeping.
	Changing(site int) Change

	// Literal reads the pointer to a site's ops; CallOps calls through one.
	Literal(site int) uint64
	CallOps(ops uint64) Outcome

	// Pending tells whether an interrupt waits that a CPU with interrupts
	// masked or not would take; Take takes it; Answer tells its sender.
	Pending(cpu int, masked bool) bool
	Take(cpu int, masked bool) (Taken, bool)
	Answer(t Ticket)

	// EnterKernel and LeaveKernel are how a CPU says that it comes from user
	// space or goes there; EnterKernel tells what was noted there before.
	EnterKernel(cpu int) Space
	LeaveKernel(cpu int)

	// BringUp begins to bring a CPU up: it takes the lock of hotplug, or is false while
	// somebody has it. ComeOnline lets rounds reach the CPU. TakeDown takes the lock and has
	// rounds pass over the CPU; it is also false while a request waits for the CPU.
	// EndHotplug gives the lock back.
	BringUp(cpu int) bool
	ComeOnline(cpu int)
	TakeDown(cpu int) bool
	EndHotplug(cpu int)

	// Arrive says that the CPU stands still for stop_machine; Resumed tells
	// whether it may go on.
	Arrive(cpu int)
	Resumed(cpu int) bool
}

// maxOps is how many ops a machine can know; only their addresses are compared.
const maxOps = 16

// OpsTable has every ops that text or a literal can name. It does not change while the machine
// runs; an OpsStates beside it says how calls end.
type OpsTable struct {
	nop   uint64 // calls no tracer, always
	addrs []uint64
}

// OpsStates is what a call through each ops of a table amounts to, two bits an ops:
// one word, which an engine guards, copies or packs as it likes.
type OpsStates uint32

const opsBits = 2

// NewOpsTable names the ops that calls no tracer (nop_ops), and others; all can be called.
func NewOpsTable(nop uint64, others ...uint64) (t OpsTable, s OpsStates, err error) {
	t = OpsTable{nop: nop}
	for _, addr := range append([]uint64{nop}, others...) {
		if slices.Contains(t.addrs, addr) {
			continue
		}
		if err := t.Add(addr); err != nil {
			return t, s, err
		}
	}
	return t, OpsStates(CalledNobody), nil
}

// Add makes an ops known. In the states that are there already it can be called.
func (t *OpsTable) Add(addr uint64) error {
	if len(t.addrs) == maxOps {
		return fmt.Errorf("more than %d ops", maxOps)
	}
	t.addrs = append(t.addrs, addr)
	return nil
}

// Bits is how many bits of an OpsStates the table's ops take.
func (t *OpsTable) Bits() uint { return opsBits * uint(len(t.addrs)) }

// Call is what a call through an address amounts to.
func (t *OpsTable) Call(s OpsStates, addr uint64) Outcome {
	for i := range t.addrs {
		if t.addrs[i] == addr {
			return Outcome(s >> (opsBits * i) & (1<<opsBits - 1))
		}
	}
	return CalledWild
}

// Set changes how calls through an ops end: CalledTracer when it is attached, CalledFreed when it
// has been released. The ops that calls no tracer never changes.
func (t *OpsTable) Set(s OpsStates, addr uint64, o Outcome) OpsStates {
	for i := range t.addrs {
		if t.addrs[i] == addr && addr != t.nop {
			s = s&^((1<<opsBits-1)<<(opsBits*i)) | OpsStates(o)<<(opsBits*i)
		}
	}
	return s
}
