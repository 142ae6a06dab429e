// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// describe puts an action, and the state that it led to, into words.
func (w *world) describe(before *world, a action, answers []uint8) Step {
	s := Step{Do: a.spell(answers), Who: fmt.Sprintf("cpu %d", a.who), Event: w.event.String()}
	s.After = w.after(a)
	if a.byPatcher() {
		s.Who = fmt.Sprintf("patcher %d", a.who)
	}
	switch a.kind {
	case stepCPU:
		s.What = w.didCPU(&before.cpu[a.who], int(a.who))
	case stepPatcher:
		s.What = w.didPatcher(&before.patcher[a.who], int(a.who))
	case begin:
		s.What = fmt.Sprintf("takes CPU %d over", w.m.homes[a.who])
	case drain:
		s.What = "a buffered store becomes visible"
	case park:
		s.What = "a timer interrupt: the task is preempted " + where(&before.cpu[a.who])
	case unpark:
		s.What = "goes on with the task that was preempted on CPU " + fmt.Sprint(a.arg)
	case skip:
		s.What = "goes on without looking for interrupts"
	case attend:
		s.What = "will look for interrupts"
	case nmi:
		s.What = "an NMI comes"
	}
	for i := range w.m.Roles {
		s.CPUs = append(s.CPUs, w.cpuState(i))
	}
	for i := range w.m.Code.Sites {
		s.Sites = append(s.Sites, w.siteState(i))
	}
	return s
}

// after is the state of the CPU or patcher after its action, on which two engines must agree.
func (w *world) after(a action) string {
	if a.byPatcher() {
		return placeOf(&w.patcher[a.who])
	}
	return stateOf(&w.cpu[a.who])
}

// placeOf is how far a patcher has got.
func placeOf(p *poke.Patcher) string {
	at, done, stage := p.Place()
	return fmt.Sprintf("step %d, patch %d, access %d, %d buffered", at, done, stage, p.Waiting())
}

// stateOf is the part of a CPU's state on which its next step depends.
func stateOf(c *cpus.CPU) string {
	s := c.Phase.String()
	if c.Phase > cpus.Asleep && !c.InInterrupt() {
		s += fmt.Sprintf(" %d", c.Site)
	}
	if c.Phase == cpus.Calling {
		s += fmt.Sprintf(", ops %#x", c.Ops)
	}
	if way, at := c.OnWay(); way != cpus.AtSite {
		s += fmt.Sprintf(", %s step %d", way, at+1)
	}
	return s
}

// cpuState is what a CPU is about, in few words.
func (w *world) cpuState(i int) string {
	c := &w.cpu[i]
	if w.leased(i) && c.Preemptible() {
		return "patching"
	}
	s := c.Phase.String()
	if c.Phase != cpus.Boundary && c.Phase != cpus.Asleep && !c.InInterrupt() {
		s += fmt.Sprintf(" %d", c.Site)
	}
	if way, _ := c.OnWay(); way != cpus.AtSite {
		s += fmt.Sprintf(", %s", way)
	}
	if w.parked[i].There() {
		s += fmt.Sprintf(", parked %s %d", w.parked[i].Phase, w.parked[i].Site)
	}
	if w.Pending(i, false) {
		s += " !"
	}
	return s
}

// siteState is a site's bytes, and the versions that each CPU may fetch.
func (w *world) siteState(site int) Site {
	n := w.m.Code.Len
	s := Site{Bytes: w.Peek(site).Format(n)}
	if w.m.Code.Named() {
		s.Literal = w.opsName(w.literal[site])
	}
	var buf []cpus.Version
	for i := range w.m.Roles {
		buf, _ = w.Window(site, w.cpu[i].Synced, buf)
		texts := spelling.Each(buf, func(v cpus.Version) string { return v.Text.Format(n) })
		s.Fetch = append(s.Fetch, texts)
	}
	return s
}

// opsName names an ops for people.
func (w *world) opsName(addr uint64) string {
	direct := w.m.Code.Path.After == cpus.DoLookUpDirect
	switch {
	case addr == w.m.NopOps && direct:
		return "nobody"
	case addr == w.m.NopOps:
		return "nop_ops"
	}
	for i, a := range w.m.ops {
		if a == addr {
			return fmt.Sprintf("ops %d", i)
		}
	}
	return fmt.Sprintf("%#x", addr)
}

// partName is what a Write stores, for people.
func (w *world) partName(st poke.Step) string {
	p := st.Part
	names := [...]string{poke.Literal: "direct call", poke.LiteralLow: "lower half of the direct call",
		poke.LiteralHigh: "upper half of the direct call"}
	if w.m.Code.Path.After == cpus.DoLookUpDirect && p >= poke.Literal && p <= poke.LiteralHigh {
		return names[p]
	}
	return strings.TrimPrefix(st.Name(), "Write ")
}

func where(c *cpus.CPU) string {
	switch c.Phase {
	case cpus.Inside:
		return fmt.Sprintf("inside site %d, behind %s", c.Site, c.Text.Format(int(c.Off)))
	case cpus.Again:
		return fmt.Sprintf("before site %d", c.Site)
	}
	return fmt.Sprintf("behind the call at site %d, before the ops is called", c.Site)
}

// didPatcher says what a patcher's step was.
func (w *world) didPatcher(was *poke.Patcher, i int) string {
	if was.Between() {
		return w.didChoose(i)
	}
	st := was.Plan[was.At]
	what := st.String()
	p := &w.patcher[i]
	switch {
	case w.waits:
		return what + ": waits"
	case st.Op == poke.Write:
		patch := &was.Patches[st.From+was.Done]
		what = fmt.Sprintf("Write %s of site %d", w.partName(st), patch.Site)
		if p.Waiting() > was.Waiting() {
			what += ", into the store buffer"
		} else if p.At == was.At && p.Done == was.Done {
			what += ": an older store first"
		}
	case st.Op == poke.Verify:
		what = fmt.Sprintf("Verify site %d", was.Patches[st.From+was.Done].Site)
		if was.InPatch() {
			what = fmt.Sprintf("Verify the literal of site %d", was.Patches[st.From+was.Done].Site)
		}
	case st.Op == poke.Map:
		what = fmt.Sprintf("Map the page of site %d", was.Patches[st.From].Site)
	case st.Op == poke.Walk && p.At == was.At:
		what += ": the large page's entry leads to a table"
	case st.Op == poke.Walk && was.Begun():
		what += ": reads that table"
	case st.Op == poke.Settle:
		what = fmt.Sprintf("promises site %d", was.Patches[st.From+was.Done].Site)
	case p.At == was.At && !was.Begun():
		what += ": asks"
	case p.At == was.At:
		what += ": has its answers"
	case was.Begun():
		what += ": done"
	}
	switch {
	case w.sat[i] == done:
		what += "; the program is over"
	case p.Between():
		what += "; the update is over"
	}
	return what
}

// didChoose says which update a patcher has chosen.
func (w *world) didChoose(i int) string {
	p := &w.m.Programs[i]
	at := w.patcher[i].At
	if at == len(p.Plan) {
		return "chooses an update: none can be made"
	}
	return "chooses an update: " + p.title(&p.Menu[p.update(at)])
}

// didCPU says what a CPU's step was, from the phases before and after it.
func (w *world) didCPU(was *cpus.CPU, i int) string {
	c := &w.cpu[i]
	site := fmt.Sprintf("site %d", c.Site)
	if was.AtBorder() && !was.Polled() {
		switch {
		case c.Phase == cpus.Interrupted:
			return "looks for interrupts: there is one"
		case c.Phase == cpus.Arriving:
			return "the stopper runs"
		case c.Phase == cpus.Crossing:
			return "is interrupted in user space"
		case c.Polled():
			return "looks for interrupts: none"
		}
		return "answers the grace period"
	}
	switch was.Phase {
	case cpus.Guarded:
		return w.didGuard(c, "loads", site)
	case cpus.Boundary, cpus.Again, cpus.Inside:
		if c.Offline(w.m.Code) && !was.Offline(w.m.Code) {
			return "goes offline: rounds pass over it"
		}
		if c.Phase == cpus.Down {
			return "is dead"
		}
		if w.m.Code.Path.Guards && was.Phase == cpus.Boundary {
			return w.didGuard(c, "comes to", site)
		}
		if w.m.Code.Path.Apart && was.Phase == cpus.Boundary {
			return "loads the ops before " + site + ": " + w.opsName(c.Ops)
		}
		return w.didFetch(was, c, site)
	case cpus.Asleep:
		if c.Phase == cpus.Asleep && c.Role == cpus.Isolated {
			return "stays in user space"
		}
		if c.Phase == cpus.Asleep {
			return "sleeps"
		}
		return "enters the kernel from user space"
	case cpus.Entered:
		if w.m.Code.Path.After == cpus.DoLookUpDirect {
			return "looks up whom to call directly for " + site + ": " + w.opsName(c.Ops)
		}
		return "loads the ops of " + site + ": " + w.opsName(c.Ops)
	case cpus.Calling:
		return strings.TrimSuffix("calls "+w.opsName(was.Ops)+" for "+site+": "+w.event.String(), ": ") // it may doubt first
	case cpus.Searching:
		return "looks " + site + " up"
	case cpus.Crossing:
		return w.didCross(was, c)
	case cpus.Down:
		if c.Phase == cpus.Crossing {
			return "is being brought up"
		}
	}
	return was.Phase.Does()
}

// didCross says what a step on a way was.
func (w *world) didCross(was, c *cpus.CPU) string {
	way, at := was.OnWay()
	s := w.m.Code.Path.WaySteps(way)[at]
	what := map[cpus.PathStep]string{
		cpus.DoCallEarly: "is about to call a traced function", cpus.DoEnter: "says that it is in the kernel",
		cpus.DoCatchUp: "fetches afresh: it was left out", cpus.DoSync: "fetches afresh",
		cpus.DoAwaitResume: "may go on", cpus.DoLeave: "says that it is in user space",
		cpus.DoLeaveAgain: "says that it is in user space, as before", cpus.DoLookAtCR3: "looks which page tables are loaded",
		cpus.DoLoadKernelCR3: "loads the kernel's page tables", cpus.DoLoadUserCR3: "loads user space's page tables",
		cpus.DoComeOnline: "is online: rounds reach it",
	}[s]
	switch now, on := c.OnWay(); {
	case now == way && on == at && c.Phase == was.Phase:
		return "waits: the machine stands still"
	case way == cpus.OnNMI && !c.InNMI():
		what += "; the NMI is over"
	}
	return what
}

// didGuard says what a look at the word that guards a site has found.
func (w *world) didGuard(c *cpus.CPU, does, site string) string {
	state := "disarmed"
	if c.Phase == cpus.Guarded {
		state = "armed"
	}
	return does + " the guard of " + site + ": " + state
}

func (w *world) didFetch(was, c *cpus.CPU, site string) string {
	if c.Phase == cpus.Asleep && c.Role == cpus.Isolated {
		return "goes to user space"
	}
	if c.Phase == cpus.Asleep {
		return "goes to sleep"
	}
	if c.Phase == cpus.Crossing {
		return "sets out for user space"
	}
	insn := "fetches " + site
	if was.Phase == cpus.Inside {
		insn = fmt.Sprintf("fetches %s+%d", site, was.Off)
	}
	switch {
	case w.found != nil && w.found.Property == cpus.HalfPair:
		return insn + ": " + w.found.Bytes[3*int(was.Off):] // three characters a byte
	case w.found != nil:
		return insn + ": " + w.found.Bytes
	case c.Phase == cpus.Trapped, c.Phase == cpus.Signalled:
		return insn + ": a breakpoint"
	case c.Phase == cpus.Inside:
		from := 0
		if was.Phase == cpus.Inside {
			from = int(was.Off)
		}
		return insn + ": " + c.Text.Slice(from, int(c.Off)-from).Format(int(c.Off)-from)
	case c.Phase == cpus.Boundary:
		return insn + ": " + isa.Nop.String()
	}
	return insn + ": " + isa.Call.String()
}
