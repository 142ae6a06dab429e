// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
)

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
		if c.hit && !code.Path.skips { // who skips acts as nothing that was found
			c.judge(code, sh.Changing(int(c.Site)), pad)
		}
	case Leaving:
		sh.Leave(int(c.ID))
	case Returning:
		if code.Path.Syncs {
			c.Synced = sh.Seq()
		}
		c.Promise = 0 // nothing is promised while a site is being patched
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
