// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
)

// awakeCalls is how many calls an idle or isolated CPU makes after an interrupt
// before it is back asleep or in user space: the interrupt's own exit path.
const awakeCalls = 2

// poll looks for interrupts at a border between two instructions.
func (c *CPU) poll(code *Code, sh Shared) {
	switch masked := c.masked(code); {
	case c.Quiet && c.BetweenCalls():
		c.Quiet = false
		sh.Answer(c.Quiesce)
		c.polled = false
	case c.stop && c.BetweenCalls() && !masked:
		c.Phase = Arriving
	case masked && !code.Traits.MaskedRounds:
	case !sh.Pending(int(c.ID), masked):
	case c.Phase == Asleep && code.Path.Tells && c.Role == Isolated: // comes in first
		c.enter(false, code)
		c.polled = false
	default:
		c.Back, c.Phase = c.Phase, Interrupted
	}
}

// masked tells whether the CPU has interrupts masked: for some calls, or by a step
// of its path. The path is asked where an interrupt would be taken only.
func (c *CPU) masked(code *Code) bool {
	if c.Masked > 0 || c.way > OnEntry {
		return true
	}
	if code.Path.masked == 0 {
		return false
	}
	at := c.Phase
	if at == Interrupted {
		at = c.Back
	}
	return code.Path.masked>>at&1 != 0
}

// interrupt is everything between taking an interrupt and going on, and the
// stand-still of stop_machine.
func (c *CPU) interrupt(code *Code, sh Shared) Event {
	switch c.Phase {
	case Interrupted:
		c.take(code, sh)
	case Syncing:
		if c.Phase = Answering; code.Deaf>>uint(c.ID)&1 == 0 {
			c.Synced = sh.Seq()
		}
	case Answering:
		sh.Answer(c.Taken.Ticket)
		c.Phase = Interrupted // another one may wait
		if c.Back == Asleep {
			c.Back, c.Awake = Boundary, awakeCalls
		}
		return IPI
	case Arriving:
		sh.Arrive(int(c.ID))
		c.stop, c.polled, c.Phase = false, false, Stopped
	case Stopped:
		c.standStill(code, sh)
	case Resuming:
		c.Synced, c.Phase = sh.Seq(), Boundary
	}
	return Nothing
}

// take takes one request, or goes back when there is none left.
func (c *CPU) take(code *Code, sh Shared) {
	t, ok := sh.Take(int(c.ID), c.masked(code) || c.Back == Stopped)
	if !ok {
		// Already looked: the next step executes. A CPU that owes a grace period an
		// answer and stands between two calls looks again and answers, as if the request
		// had come before.
		c.Phase = c.Back
		c.polled = !c.Quiet || !c.BetweenCalls()
		return
	}
	c.Taken = t
	switch t.Cause {
	case Quiesce, QuiesceCPUs: // answered at the next boundary between two calls
		if c.Quiet {
			// The task that was asked where it was preempted is asked again
			// here: its one answer to come is enough for the patcher, who is
			// the same.
			c.Phase = Answering
			return
		}
		c.Quiet, c.Quiesce = true, t.Ticket
		return
	case Stop:
		c.stop = true
	}
	c.Phase = Answering
	if t.Cause.Syncs() || code.Traits.InterruptSyncs {
		c.Phase = Syncing
	}
}

// standStill waits in stop_machine with interrupts off. Where rounds get
// through masked interrupts, they are taken.
func (c *CPU) standStill(code *Code, sh Shared) {
	c.polled = !c.polled
	switch {
	case c.polled && code.Traits.MaskedRounds:
		if sh.Pending(int(c.ID), true) {
			c.Back, c.Phase = Stopped, Interrupted
		}
	case sh.Resumed(int(c.ID)):
		c.Phase, c.polled = Resuming, false
	}
}

// Tick is a local timer interrupt between two instructions: no other CPU sent
// it, and where interrupts synchronise the CPU fetches afresh.
func (c *CPU) Tick(code *Code, sh Shared) {
	if c.AtBorder() && !c.masked(code) && code.Traits.InterruptSyncs {
		c.Synced = sh.Seq()
	}
}

// Cause is why one CPU interrupts another.
type Cause uint8

// The causes. All but the last two are interrupts and are counted.
const (
	// Sync is a round of a protocol that changes records: fetch afresh, then
	// answer (on_each_cpu(do_sync_core), arch/x86/kernel/alternative.c; remote
	// fence.i, arch/riscv/mm/cacheflush.c).
	Sync Cause = iota
	// Stop wakes a CPU's stopper for stop_machine (kernel/stop_machine.c).
	Stop
	// StaticKey and StaticCall are rounds like Sync that other updates send, such
	// as those of a tracepoint that gets its first user: a key's branches change
	// together (kernel/jump_label.c), a static call's sites one by one
	// (kernel/static_call_inline.c).
	StaticKey
	StaticCall
	// Trampoline and EntryCall are such rounds too: an ops' own trampoline, and
	// the calls inside ftrace_caller and ftrace_regs_caller, are given another
	// function to call (update_ftrace_func, arch/x86/kernel/ftrace.c).
	Trampoline
	EntryCall
	// CoreSync orders the loads of a tracer's function and of its data (ftrace_sync_ipi,
	// kernel/trace/ftrace.c). The CPU does not fetch afresh for that.
	CoreSync
	// PageAttributes flushes translations of pages whose protection changed
	// (cpa_flush, arch/x86/mm/pat/set_memory.c).
	PageAttributes
	// Quiesce asks a CPU to say when it is in no trampoline. It models the waiting of RCU-tasks,
	// which sends no interrupt, and is not counted.
	Quiesce
	// QuiesceCPUs asks the same of a CPU, whatever tasks it has preempted
	// (synchronize_rcu).
	QuiesceCPUs

	NumCauses = int(Quiesce) // causes that are counted
)

var causeNames = [...]string{"sync", "stop", "static-key", "static-call", "trampoline", "entry-call", "core-sync",
	"page-attributes",
	"quiesce", "quiesce-cpus"}

func (c Cause) String() string { return causeNames[c] }

// Syncs tells whether a CPU fetches afresh for the cause, even where interrupts alone do not
// make it.
func (c Cause) Syncs() bool {
	return c == Sync || c >= StaticKey && c <= EntryCall
}

// trap is a step of the breakpoint handler, in the path's order. It runs with
// interrupts off.
func (c *CPU) trap(code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	switch c.Phase {
	case Trapped:
		if !sh.Enter(int(c.ID)) {
			c.Phase = Missed
			return Miss
		}
	case Searching:
		pad.probe.Comparisons = 0
		var found Found
		c.Act, found = sh.Find(code.Sites[c.Site], &pad.probe)
		// An int3 that the patch itself wants is somebody else's to handle (case
		// INT3_INSN_OPCODE in smp_text_poke_int3_handler).
		c.hit = found == Hit && c.Act.Kind != isa.Breakpoint
		if found == TornDown && code.Path.refers {
			n := code.Traits.BreakpointLen
			c.violate(code, pad, UseAfterFree, code.Arch.Breakpoint(), n, "the handler looks for it in a batch that is "+
				"no more: %v")
		}
		if c.hit && !code.Path.skips { // a handler that skips acts as no instruction
			c.judge(code, sh.Changing(int(c.Site)), pad)
		}
	case Leaving:
		sh.Leave(int(c.ID))
	case Returning:
		if code.Path.Syncs {
			c.Synced = sh.Seq()
		}
		c.Promise = 0 // no promise holds while a site is being patched
		return c.act(code, ch, pad)
	case Missed:
		return c.miss(code, sh, pad)
	case Retrying:
		c.Synced, c.Phase = sh.Seq(), Again
		return Nothing
	}
	c.Phase = code.Path.next[c.Phase]
	end := c.Phase == Returning || c.Phase == Retrying
	if end && !c.hit && code.Path.found>>c.Phase&1 != 0 {
		c.Phase = Missed
		return Miss
	}
	return Nothing
}

// judge holds the instruction that the handler found against what the plan says of the
// site. The published batch is no witness: it is what is judged.
func (c *CPU) judge(code *Code, is Change, pad *Scratchpad) {
	site := int(c.Site)
	if is.Allows(code, site, c.Act) {
		return
	}
	pad.window = pad.window[:0] // nothing was fetched for this
	c.violate(code, pad, WrongInstruction, code.Arch.Breakpoint(), code.Traits.BreakpointLen, fmt.Sprintf(
		"the handler acts as %s, the site changes from %s to %s%%v", c.Act, code.Act(site, is.From), code.Act(site, is.To)))
}

// act goes on as the instruction that the handler found.
func (c *CPU) act(code *Code, ch Chooser, pad *Scratchpad) Event {
	insn := c.Act
	if code.Path.skips {
		insn = isa.Insn{Kind: isa.Nop}
	}
	pad.window = pad.window[:0] // nothing was fetched for this
	if code.Always && insn.Kind != isa.Call {
		n := code.Traits.BreakpointLen
		c.violate(code, pad, LostCall, code.Arch.Breakpoint(), n, "the handler goes on behind the site, which calls a "+
			"tracer before and after the update%v")
		c.Phase = Boundary
		return Lost
	}
	return c.execute(code, ch, insn, false, pad)
}

// miss is a CPU's next step when no batch has an entry for its breakpoint.
func (c *CPU) miss(code *Code, sh Shared, pad *Scratchpad) Event {
	n := code.Traits.BreakpointLen
	now := sh.Peek(int(c.Site)).Slice(int(c.Off), n)
	gone := now != code.Arch.Breakpoint()
	switch how := code.Path.missed; {
	case code.Probed>>uint(c.Site)&1 != 0:
		c.Phase = Boundary
		return Untraced
	case how == DoSkip && (gone || !code.Path.again):
		return c.skip(code, pad)
	case !gone:
		return c.broken(code, pad, UnhandledBreakpoint, now, n, "no entry for it, and it is still there: %v")
	case how == DoFatal:
		return c.broken(code, pad, UnhandledBreakpoint, now, n, "no entry for it any more, and the handler may not "+
			"look again: %v")
	}
	c.Phase = Retrying
	return Nothing
}

// skip goes on behind a site whose breakpoint had no entry.
func (c *CPU) skip(code *Code, pad *Scratchpad) Event {
	if c.Phase = Boundary; code.Always {
		pad.window = pad.window[:0]
		n := code.Traits.BreakpointLen
		c.violate(code, pad, LostCall, code.Arch.Breakpoint(), n, "no entry for it, and the handler goes on behind "+
			"the site, which calls a tracer before and after the update%v")
		return Lost
	}
	return Untraced
}

// broken records a violation after which the call cannot go on.
func (c *CPU) broken(code *Code, pad *Scratchpad, p Property, text isa.Text, n int, why string) Event {
	c.violate(code, pad, p, text, n, why)
	c.Phase = Boundary
	return Broken
}

// violate records a violation; why gets the CPU's window of versions.
func (c *CPU) violate(code *Code, pad *Scratchpad, p Property, text isa.Text, n int, why string) {
	window := ""
	if len(pad.window) > 0 {
		window = "window "
	}
	for i, v := range pad.window {
		if i > 0 {
			window += " <- "
		}
		window += v.Text.Format(code.Len)
	}
	pad.Found = true
	pad.Violation = Violation{
		Property: p, CPU: int(c.ID), Site: int(c.Site), Addr: code.Sites[c.Site],
		Bytes: text.Format(n), Why: strings.TrimSuffix(fmt.Sprintf(why, window), ": "), // where there is none
	}
}
