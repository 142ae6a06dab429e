package cpus

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
)

// trap is the breakpoint handler, poke_int3_handler in
// arch/x86/kernel/alternative.c (smp_text_poke_int3_handler since Linux 6.16):
// take a reference, look the address up, give the reference back, act as the
// new instruction. It runs with interrupts off.
func (c *CPU) trap(code *Code, sh Shared, ch Chooser, pad *Scratchpad) Event {
	switch c.Phase {
	case Trapped:
		if c.Phase = Searching; !sh.Enter(int(c.ID)) {
			c.Phase = Missed
			return Miss
		}
	case Searching:
		pad.probe.Comparisons = 0
		var found Found
		c.Act, found = sh.Find(code.Sites[c.Site], &pad.probe)
		c.hit, c.Phase = found == Hit, Leaving
		if found == TornDown {
			n := code.Traits.BreakpointLen
			c.violate(code, pad, UseAfterFree, code.Arch.Breakpoint(), n, "the handler looks for it in a batch that is no more: %v")
		}
	case Leaving:
		sh.Leave(int(c.ID))
		if c.Phase = Returning; !c.hit {
			c.Phase = Missed
			return Miss
		}
	case Returning:
		if code.Traits.TrapSyncs {
			c.Synced = sh.Seq()
		}
		c.Promise = 0 // nothing is promised while a site is being patched
		return c.act(code, ch, pad)
	case Missed:
		return c.miss(code, sh, pad)
	case Retrying:
		c.Synced, c.Phase = sh.Seq(), Again
	}
	return Nothing
}

// act goes on as the instruction that the handler found.
func (c *CPU) act(code *Code, ch Chooser, pad *Scratchpad) Event {
	if code.TrapSkips {
		c.Act = isa.Insn{Kind: isa.Nop}
	}
	pad.window = pad.window[:0] // nothing was fetched for this
	if code.Always && c.Act.Kind != isa.Call {
		n := code.Traits.BreakpointLen
		c.violate(code, pad, LostCall, code.Arch.Breakpoint(), n, "the handler goes on behind the site, which calls a tracer before and after the update%v")
		c.Phase = Boundary
		return Lost
	}
	return c.execute(code, ch, c.Act, false, pad)
}

// miss is what the kernel did until 6.2 when nobody owned a breakpoint
// (kprobe_int3_handler, removed by 8e791f7eba4c): look at the text, and if the
// breakpoint has gone, go back and execute what is there now.
func (c *CPU) miss(code *Code, sh Shared, pad *Scratchpad) Event {
	n := code.Traits.BreakpointLen
	now := sh.Peek(int(c.Site)).Slice(0, n)
	switch {
	case code.Probed>>uint(c.Site)&1 != 0:
		c.Phase = Boundary
		return Untraced
	case now == code.Arch.Breakpoint():
		return c.broken(code, pad, UnhandledBreakpoint, now, n, "no entry for it, and it is still there: %v")
	case code.NoRecheck:
		return c.broken(code, pad, UnhandledBreakpoint, now, n, "no entry for it any more, and the handler may not look again: %v")
	}
	c.Phase = Retrying
	return Nothing
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
