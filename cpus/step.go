// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"cmp"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// Step advances c by one step: at most one access to sh, and whatever private
// work follows it. Before every instruction there is a step that looks for
// interrupts. pad.Found is set when the step violated a property.
func Step(c *CPU, code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	pad.Found = false
	if c.Phase <= lastBorder {
		if !c.polled {
			c.polled = true
			c.poll(code, sh)
			return Nothing
		}
		c.polled = false
	}
	switch c.Phase {
	case Boundary:
		if c.goesDown(code, sh, ch) {
			return Nothing
		}
		return c.call(code, sh, ch, pad)
	case Asleep:
		if code.Path.Tells && c.Role == Isolated && ch.Choose(ChooseEnter, 2) == 1 { // a system call
			c.enter(true, code)
		}
		return Nothing
	case Guarded:
		c.guarded(code, sh)
		return Nothing
	case Signalled:
		c.Phase = code.Path.trap
		return Nothing
	case Again:
		return c.first(code, sh, ch, pad)
	case Inside:
		return c.fetch(code, sh, ch, pad)
	case Entered:
		c.Ops, c.Phase = sh.Literal(int(c.Site)), Calling
		return Nothing
	case Calling:
		if c.Linger > 0 {
			c.Linger--
			return Nothing
		}
		return c.dispatch(code, sh, pad)
	case Doubting:
		return c.doubt(code, sh, pad)
	case Crossing:
		c.cross(code, sh)
		return Nothing
	case Down:
		if code.Path.ComesUp && ch.Choose(ChooseEnter, 2) == 1 && sh.BringUp(int(c.ID)) {
			c.Synced = sh.Seq() // whatever it had fetched ahead is gone
			c.begin(OnUp)
		}
		return Nothing
	case Trapped, Searching, Leaving, Returning, Missed, Retrying:
		return c.trap(code, sh, ch, pad)
	default:
		return c.interrupt(code, sh)
	}
}

// call starts a call of some traced function.
func (c *CPU) call(code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	if c.Role == Idle || c.Role == Isolated || c.way != AtSite { // such roles run kernel code only when interrupted
		if c.Awake == 0 {
			c.rest(code, sh)
			return Nothing
		}
		c.Awake--
	}
	switch {
	case c.Masked > 0:
		c.Masked--
	case c.Role == IrqsOff:
		// Every other stretch of instructions runs with interrupts masked.
		stretch := cmp.Or(code.Stretch, maskStretch)
		if n := ch.Choose(ChooseMask, 2*stretch); n >= stretch {
			c.Masked = uint16(n)
		}
	}
	pad.begun++
	c.Site = int32(ch.Choose(ChooseSite, len(code.Sites)))
	if code.Path.Apart {
		c.Ops, c.Phase = sh.Literal(int(c.Site)), Again
		return Nothing
	}
	if code.Path.Guards {
		c.guard(code, sh)
		return Nothing
	}
	return c.first(code, sh, ch, pad)
}

// guard reads the word that guards the site. If it is fetched as the operand of a compare,
// the fetches behind it see the stores that came before the word's (AMD APM vol. 2, 7.6.1,
// "Asynchronous modification"). If it is loaded as data, they may still see older text.
func (c *CPU) guard(code *Code, sh Shared) {
	c.Phase = Guarded
	switch {
	case !code.Path.fetchesGuard:
		c.guarded(code, sh)
	case !c.armed(sh):
		c.Synced, c.Phase = sh.Seq(), Again
	}
}

// guarded looks whether the guard is still armed.
func (c *CPU) guarded(code *Code, sh Shared) {
	if c.armed(sh) {
		return
	}
	if c.Phase = Again; code.Path.guardSyncs {
		c.Synced = sh.Seq()
	}
}

// armed tells whether the word that guards the site names no tracer.
func (c *CPU) armed(sh Shared) bool { return sh.CallOps(sh.Literal(int(c.Site))) == CalledNobody }

// maskStretch is the usual stretch with interrupts masked, in calls. Long
// against a round, short against a run.
const maskStretch = 64

// enter begins the way from user space into the kernel; early: with the call, if any,
// that is made before anything else.
func (c *CPU) enter(early bool, code *Code) {
	c.begin(OnEntry)
	if code.Path.programs[OnEntry][0] == DoCallEarly {
		c.at = 1
		if early {
			c.Phase, c.Awake = Boundary, 1
		}
	}
}

// rest ends a stay in the kernel: the CPU goes back to sleep, or to user space, by way of the rest
// of the path that called.
func (c *CPU) rest(code *Code, sh Shared) {
	switch {
	case c.stop && code.Path.Tells && c.Role == Isolated: // its stopper runs first, in the kernel
	case c.way != AtSite:
		c.goOn(code, sh)
	case !code.Path.Tells || c.Role != Isolated:
		c.Phase = Asleep
	case len(code.Path.WaySteps(OnExit)) > 0:
		c.begin(OnExit)
	default:
		c.Phase = Asleep
		sh.LeaveKernel(int(c.ID))
	}
}

// first fetches and executes the site's first instruction.
func (c *CPU) first(code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	c.Off, c.Text, c.Scratch = 0, 0, 0
	return c.fetch(code, sh, ch, pad)
}

// garbled stands for a site's text after a CPU has executed an instruction there that
// mixes versions, with the operands of one and the opcode of another. It does no harm
// if the CPU meets a breakpoint next and its handler has it start again.
const garbled = ^isa.Text(0)

// fetch reads the site's next instruction and executes it.
func (c *CPU) fetch(code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	site, off := int(c.Site), int(c.Off)
	n := min(code.Traits.FetchLen, code.Len-off)
	window, settled := sh.Window(site, c.Synced, pad.window)
	pad.window = window
	text := window[0].Text.Slice(off, n)
	mixed := len(window) > 1
	if mixed {
		text = code.mix(window, code.Sites[site]+records.Addr(off), off, n, ch)
	}
	insn, n := code.insn(site, text, off, c.Scratch)
	text = text.Slice(0, n)
	inside := off+n < code.Length(site) && !insn.Kind.LeadsAway()
	torn := mixed && insn.Kind != isa.Breakpoint && !seen(window, 0, off, n, text)
	switch {
	case c.Text == garbled && (insn.Kind != isa.Breakpoint || !code.Path.GoesBack):
		return c.broken(code, pad, TornFetch, text, n, "behind an instruction that mixes versions: %v")
	case insn.Kind == isa.Breakpoint:
		if c.Phase = code.Path.trap; code.Path.Signals {
			c.Phase = Signalled
		}
		return Trap
	case torn && inside && insn.Kind == isa.Plain && code.Path.GoesBack:
		c.Off, c.Text, c.Phase = uint8(off+n), garbled, Inside
		return Nothing
	case torn:
		return c.broken(code, pad, TornFetch, text, n, "mixes versions: %v")
	}
	stale := settled.Seq() != 0 && !seen(window, settled.Seq(), off, n, text)
	if stale {
		c.violate(code, pad, StaleAfterCompletion, text, n, "the update had completed, this CPU last synchronised "+
			"before its stores: %v")
	}
	done := c.Text.Splice(off, n, text).Slice(0, off+n)
	if !c.goesOn(window, off+n, done) {
		return c.broken(code, pad, HalfPair, done, off+n, "no version has these instructions one behind the other: %v")
	}
	if inside {
		c.Off, c.Phase = uint8(off+n), Inside
		if insn.Kind == isa.Scratch {
			c.Scratch = uint64(insn.Target)
		}
		return Nothing
	}
	if !code.meant(off+n, done) {
		return c.broken(code, pad, TornFetch, done, off+n, "half of a change: %v")
	}
	if code.Always && insn.Kind != isa.Call && !stale {
		c.Phase = Boundary
		c.violate(code, pad, LostCall, text, n, "the site makes no call meanwhile, though it calls a tracer before and after "+
			"the update: %v")
		return Lost
	}
	c.Promise = settled
	return c.execute(code, ch, insn, stale, pad)
}

// goesOn tells whether the n bytes that were executed of a site are those of one of
// its versions: one that can be fetched, or the one that was begun with.
func (c *CPU) goesOn(window []Version, n int, done isa.Text) bool {
	for _, v := range window {
		if v.Text.Slice(0, n) == done {
			c.Text = v.Text
			return true
		}
	}
	return c.Text.Slice(0, n) == done
}

// meant tells whether n bytes are the beginning of a text that patches lead to.
func (c *Code) meant(n int, done isa.Text) bool {
	for _, t := range c.Meant {
		if t.Slice(0, n) == done {
			return true
		}
	}
	return len(c.Meant) == 0
}

// seen tells whether some version from since on has this text.
func seen(window []Version, since Seq, off, n int, text isa.Text) bool {
	for _, v := range window {
		if v.Seq < since {
			return false
		}
		if v.Text.Slice(off, n) == text {
			return true
		}
	}
	return false
}

// execute does what the site's last instruction says, or what a trap handler
// acts as. stale: an update had promised that something else is executed.
func (c *CPU) execute(code *Code, ch Chooser, insn isa.Insn, stale bool, pad *Scratchpad) Event {
	if insn.Kind != isa.Call {
		c.Phase = Boundary
		if stale {
			return Lost
		}
		return Untraced
	}
	switch c.Phase = Calling; {
	case code.Path.Apart:
		if insn.Target != code.Entry && uint64(insn.Target) != c.Ops {
			return c.broken(code, pad, MismatchedOps, isa.Text(c.Ops), 8, "this ops was loaded before the site came to "+
				"call another one's function: %v")
		}
	case code.Path.After == DoLoadLiteral, code.Path.After == DoLookUpDirect && insn.Target == code.Entry:
		c.Phase = Entered
	default:
		c.Ops = uint64(insn.Target)
	}
	c.Linger = uint16(ch.Choose(ChooseLinger, maxLinger))
	return Nothing
}

// maxLinger bounds how many steps a CPU may spend in a trampoline before it
// calls the ops. Interrupts are taken there; real tasks may be away for as long
// as they like.
const maxLinger = 1<<14 - 1

// dispatch calls through the loaded ops.
func (c *CPU) dispatch(code *Code, sh Shared, pad *Scratchpad) Event {
	c.Phase = Boundary
	outcome := sh.CallOps(c.Ops)
	if outcome == CalledTracer && code.Dispatch != nil {
		outcome = code.Dispatch(int(c.ID), int(c.Site))
	}
	switch outcome {
	case CalledTracer:
		return Traced
	case CalledNobody:
		if code.Always {
			c.violate(code, pad, LostCall, isa.Text(c.Ops), 8, "no tracer is named, though one is before and after the "+
				"update: %v")
			return Lost
		}
		if c.Promise.Seq() != 0 {
			c.Phase = Doubting
			return Nothing
		}
		return Untraced
	case CalledFreed:
		c.violate(code, pad, UseAfterFree, isa.Text(c.Ops), 8, "the ops was released while this CPU was on its way to it: %v")
	default:
		c.violate(code, pad, TornLiteral, isa.Text(c.Ops), 8, "no ops has this address: %v")
	}
	return Untraced
}

// doubt decides whether a tracer was promised the call that met nop_ops: yes,
// if the promise that was there before the fetch is still there.
func (c *CPU) doubt(code *Code, sh Shared, pad *Scratchpad) Event {
	c.Phase = Boundary
	if sh.Settled(int(c.Site)) != c.Promise {
		return Untraced // the next update has begun meanwhile
	}
	c.violate(code, pad, LostCall, isa.Text(c.Ops), 8, "the literal was to name a tracer, and still names none: %v")
	return Lost
}
