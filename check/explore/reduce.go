// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// Reductions say which states and interleavings a search may leave out. The
// verdict is the same with any of them; a test holds every combination against
// the search that leaves nothing out.
type Reductions struct {
	// Symmetry takes states for one that differ in which of several equal CPUs
	// is which.
	Symmetry bool
	// Sites does so for which of several equal sites is which, once no patcher
	// will touch them any more. Before that they are not equal: patchers change
	// them one after the other.
	Sites bool
	// Order lets a step that need not be interleaved follow the one before it
	// at once. Such a step either commutes with whatever anybody else can do
	// meanwhile (Lipton, "Reduction", CACM 18(12), 1975), or makes a CPU fetch
	// afresh: done at once it leaves the CPU the more versions to fetch, so
	// that whatever can go wrong after a later one can go wrong after it.
	Order bool
	// Single lets one of several equal CPUs make calls, and one CPU at a time. It counts
	// only together with Order, and where CPUs do nothing to each other; see single.
	Single bool
}

// reductions are the choices and their names, the default first.
var reductions = []struct {
	name string
	Reductions
}{
	{"all", Reductions{Symmetry: true, Sites: true, Order: true}},
	{"none", Reductions{}},
	{"symmetry", Reductions{Symmetry: true, Sites: true}},
	{"order", Reductions{Order: true}},
	{"single", Reductions{Symmetry: true, Sites: true, Order: true, Single: true}},
}

// ReductionNames lists the choices, the default first.
func ReductionNames() (names []string) {
	for _, r := range reductions {
		names = append(names, r.name)
	}
	return names
}

func (r Reductions) String() string {
	for _, n := range reductions {
		if n.Reductions == r {
			return n.name
		}
	}
	return ""
}

// ParseReductions reads a choice.
func ParseReductions(s string) (Reductions, error) {
	for _, r := range reductions {
		if r.name == s {
			return r.Reductions, nil
		}
	}
	return Reductions{}, fmt.Errorf("reduce %q: not one of %v", s, ReductionNames())
}

// quiet says of a place in a program what cannot happen from there on before the
// patcher has waited for a CPU that is in the middle of something.
type quiet struct {
	calls   bool // no ops is attached or released before a grace period has begun
	lookups bool // nothing is published or cleared before handlers are waited for
	entries bool // nothing is published or unpublished before a round is sent
}

// and is what holds on either way.
func (q quiet) and(r quiet) quiet {
	return quiet{q.calls && r.calls, q.lookups && r.lookups, q.entries && r.entries}
}

// findQuiet works quiet out, from the end of each update. An update of a menu may be followed
// by any that its end leaves ready; findQuiet begins with none of them and repeats.
func (m *Model) findQuiet() {
	for i := range m.Programs {
		p := &m.Programs[i]
		list := make([]quiet, len(p.Plan)+1)
		for at := range list {
			list[at] = quiet{true, true, true}
		}
		for changed := true; changed; {
			changed = false
			for _, u := range p.updates() {
				after := quiet{true, true, true}
				for k := range p.Menu {
					if next := &p.Menu[k]; next.Follows(&u) || m.anyEnd || m.shares(i) {
						after = after.and(list[next.From])
					}
				}
				before := list[u.From]
				for at := u.To - 1; at >= u.From; at-- {
					after = m.quietBefore(p, p.Plan[at], after)
					list[at] = after
				}
				changed = changed || list[u.From] != before
			}
		}
		for _, u := range p.Menu {
			list[len(p.Plan)] = list[len(p.Plan)].and(list[u.From])
		}
		m.quiet = append(m.quiet, list)
	}
}

// quietBefore is what cannot happen from a step on, given what cannot behind it.
func (m *Model) quietBefore(p *Program, st poke.Step, q quiet) quiet {
	switch st.Op {
	case poke.Attach, poke.Release:
		q.calls = false
	case poke.GracePeriod:
		q.calls = true
	case poke.Publish, poke.Clear:
		q.lookups, q.entries = false, false
	case poke.Write: // a handler's look-up depends on which change of its site a breakpoint stands for
		several := func(patch poke.Patch) bool { return len(m.changes[patch.Site]) > 1 }
		q.lookups = q.lookups && !(st.Part == poke.Breakpoint && slices.ContainsFunc(p.Patches[st.From:st.To], several))
	case poke.Unpublish:
		q.entries = false
	case poke.Sync:
		q.entries = q.entries || !st.Lazy // who is left out answers nothing
	case poke.WaitHandlers:
		q.lookups = m.Refs != int3.NoRef
	}
	return q
}

// callsQuiet tells whether a call that is about to be made can be made at once.
func (w *world) callsQuiet() bool {
	for i := range w.m.Programs {
		p := &w.patcher[i]
		at := p.At
		if at < len(p.Plan) && p.Plan[at].Op == poke.GracePeriod && p.Begun() {
			at++ // CPUs that have answered are waited for no more
		}
		if !w.m.quiet[i][at].calls || p.HoldsOps() {
			return false
		}
	}
	return true
}

func (w *world) lookupsQuiet() bool {
	if w.m.Refs == int3.NoRef {
		return false
	}
	for i := range w.m.Programs {
		if p := &w.patcher[i]; !w.m.quiet[i][p.At].lookups || p.HoldsBatch() ||
			w.m.layout.change > 0 && p.Waiting() > 0 { // a breakpoint, perhaps
			return false
		}
	}
	return true
}

// oneByOne leaves of what may happen next the steps of one CPU that has yet to
// answer the round, or the call to stand still, that the only patcher waits for.
// The patcher can do nothing before that, and CPUs do nothing to each other (but where
// one that is in the handler lets another one in). So
// all steps of others commute with those of this CPU, and can come when it has
// answered (a persistent set: Godefroid, "Partial-Order Methods for the
// Verification of Concurrent Systems", LNCS 1032, 1996). It answers after a
// bounded number of its steps, so that no step is put off for ever.
func (w *world) oneByOne(list []action) []action {
	if !w.alone() || w.m.Preempt || w.sat[0] != sitting {
		return list
	}
	p := &w.patcher[0]
	if p.Waiting() > 0 || !p.Begun() || w.letsIn() {
		return list
	}
	if op := p.Plan[p.At].Op; op != poke.Sync && op != poke.StopMachine {
		return list
	}
	for _, a := range list {
		if a.kind == stepCPU && w.owesAnswer(int(a.who), 0) && !w.stopped[a.who] {
			list[0] = a
			return list[:1]
		}
	}
	return list
}

// single leaves the calls of all CPUs but one out, and lets these answer at once: those that have
// an equal one before them, and those between two calls while another one is in a call. What
// goes wrong, goes wrong on one CPU, or on the patcher's. CPUs do nothing to each other, and the
// patcher waits only for answers, which a CPU gives between two calls as well, and for
// handlers, of which there are fewer. So each way to it is one without the others' calls, too.
func (w *world) single(list []action) []action {
	for _, a := range list {
		if w.followerSteps(a) && w.obliged(int(a.who)) {
			list[0] = a
			return list[:1]
		}
	}
	in := slices.IndexFunc(w.cpu[:len(w.m.Roles)], func(c cpus.CPU) bool { return inCall(&c) })
	return slices.DeleteFunc(list, func(a action) bool {
		return w.followerSteps(a) || a.kind == stepCPU && in >= 0 && !inCall(&w.cpu[a.who]) && !w.obliged(int(a.who))
	})
}

// followerSteps tells whether an action is a step of a CPU that has an equal one before it.
func (w *world) followerSteps(a action) bool { return a.kind == stepCPU && w.m.alike[a.who] >= 0 }

// obliged tells whether a CPU that makes no call of its own has something to do.
func (w *world) obliged(i int) bool {
	c := &w.cpu[i]
	switch c.Phase {
	case cpus.Boundary, cpus.Asleep:
		return c.Owes() || w.Pending(i, false)
	case cpus.Stopped:
		return !w.stopped[i] || w.m.Code.Traits.MaskedRounds && w.Pending(i, true)
	case cpus.Crossing:
		way, at := c.OnWay()
		return w.m.Code.Path.WaySteps(way)[at] != cpus.DoAwaitResume || !w.stopped[i]
	}
	return c.Phase != cpus.Down
}

// inCall tells whether a CPU is in the middle of a call, on a way, or holds interrupts back.
func inCall(c *cpus.CPU) bool {
	at := c.Phase
	if at == cpus.Interrupted || at == cpus.Syncing || at == cpus.Answering {
		at = c.Back
	}
	way, _ := c.OnWay()
	return way != cpus.AtSite || c.Masked > 0 || at > cpus.Asleep && at < cpus.Arriving || at == cpus.Doubting
}

// letsIn tells whether handlers alone hold the count that they share: then who tries to
// take a reference gets it because another one is inside, and not behind that.
func (w *world) letsIn() bool {
	if w.m.Refs != int3.SharedRef {
		return false
	}
	held := *w.ref(0)
	for i := range w.cpu {
		if w.m.Code.Path.Holds(w.cpu[i].Phase) {
			held--
		}
	}
	return held == 0 && *w.ref(0) > 0
}

// entriesQuiet tells whether a handler that is about to take a reference can take
// it at once: there is one to be had, and it cannot be given back before the CPU
// has answered a round, which it does not in the handler.
func (w *world) entriesQuiet(cpu int) bool { return *w.ref(cpu) > 0 && w.keepsReference() }

// keepsReference tells whether the patcher's own reference is there, and stays there until
// each CPU that is in the handler has left it and has answered a round.
func (w *world) keepsReference() bool {
	if w.letsIn() {
		return false
	}
	for i := range w.m.Programs {
		p := &w.patcher[i]
		at := p.At
		if at < len(p.Plan) && p.Plan[at].Op == poke.Sync && p.Begun() {
			at++ // the CPU may have answered
		}
		if !w.m.quiet[i][at].entries || p.HoldsBatch() {
			return false
		}
	}
	return true
}

// leavesQuiet tells whether a handler that holds a reference can look up and give it back at once:
// a CPU that could enter meanwhile can also enter behind it.
func (w *world) leavesQuiet() bool {
	return w.lookupsQuiet() && (w.m.Refs != int3.SharedRef || w.keepsReference())
}

// runOn goes on with the CPU or patcher that has just made a step for as long as its next one need
// not be interleaved.
func (w *world) runOn(a action, ch cpus.Chooser) {
	switch a.kind {
	case stepPatcher:
		w.runPatcherOn(int(a.who), ch)
	case stepCPU:
		w.runCPUOn(int(a.who), ch)
	}
}

// runPatcherOn: no CPU sees a patcher's reads of data that only patchers write, nor its steps on
// itself.
func (w *world) runPatcherOn(i int, ch cpus.Chooser) {
	p := &w.patcher[i]
	for w.found == nil && !w.waits && w.sat[i] == sitting && w.alone() {
		if p.Between() {
			return
		}
		st := p.Plan[p.At]
		switch {
		case w.chose: // only the patcher sees which update it has chosen
		case st.Op == poke.Verify && (p.InPatch() || w.settled[p.Patches[st.From+p.Done].Site].Seq() == 0):
		case st.Op == poke.Settle && w.settled[p.Patches[st.From+p.Done].Site].Seq() == 0:
			// The sooner the more is promised, unless it takes a promise's place.
		case st.Op == poke.WaitHandlers && !p.HoldsBatch() && (!p.Begun() || p.Clearing() && w.m.Refs != int3.NoRef):
		default:
			return
		}
		w.perform(action{kind: stepPatcher, who: uint8(i)}, ch)
		if w.waits {
			w.waits = false // the step before did change something
			return
		}
	}
}

// alone tells whether there is one patcher only: then nothing is stored while it
// waits.
func (w *world) alone() bool { return len(w.m.Programs) == 1 }

// runCPUOn goes on with a CPU. A look for interrupts that finds none goes with the
// instruction after it: both commute with a request that is sent in between, whose
// sender waits until the CPU has answered.
func (w *world) runCPUOn(i int, ch cpus.Chooser) {
	c := &w.cpu[i]
	looked := w.alone() && c.AtBorder() && c.Polled()
	for w.found == nil && (looked || w.runsOn(c, i)) {
		if looked = false; c.Phase == cpus.Calling && !c.Polled() {
			w.perform(action{kind: skip, who: uint8(i)}, ch)
		}
		w.perform(action{kind: stepCPU, who: uint8(i)}, ch)
	}
	if w.found == nil && w.alone() && c.AtBorder() && c.Polled() && !c.Owes() {
		// Having looked already makes no difference: a request that comes meanwhile
		// may as well come after the instruction. One that has come already would be
		// answered before it, though.
		w.perform(action{kind: attend, who: uint8(i)}, ch)
	}
}

// runsOn tells whether a CPU's next step need not be interleaved.
func (w *world) runsOn(c *cpus.CPU, i int) bool {
	switch c.Phase {
	case cpus.Trapped:
		return w.entriesQuiet(i)
	case cpus.Searching: // patchers wait only for CPUs that hold a reference
		return w.m.Code.Path.Holds(c.Phase) && w.leavesQuiet()
	case cpus.Leaving: // before it others wait, unless they publish again without
		return w.m.Refs == int3.NoRef || w.leavesQuiet()
	case cpus.Answering, cpus.Arriving: // others wait for it; the sooner the better
		return true
	case cpus.Returning, cpus.Retrying, cpus.Syncing, cpus.Resuming: // fetches afresh
		return true
	case cpus.Crossing: // does so where it is on its way into the kernel
		way, at := c.OnWay()
		s := w.m.Code.Path.WaySteps(way)[at]
		return s == cpus.DoCatchUp || s == cpus.DoSync
	case cpus.Interrupted: // only this CPU takes from its box
		return w.alone()
	case cpus.Calling:
		return !w.leased(i) && w.callsQuiet()
	}
	return false
}
