// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// stuck tells whether a patcher that waits will wait for ever: whether none of the CPUs and
// patchers that it waits for, directly or through others, can move. CPUs that can move get to
// answer at last, which is fair to assume of hardware.
func (w *world) stuck(patcher int) bool {
	var able [MaxPatchers]bool
	for changed := true; changed; {
		changed = false
		for i := range w.m.Programs {
			if !able[i] && w.canMove(i, &able) {
				able[i], changed = true, true
			}
		}
	}
	return !able[patcher]
}

// canMove tells whether a patcher gets on if the able ones do.
func (w *world) canMove(i int, able *[MaxPatchers]bool) bool {
	p := &w.patcher[i]
	if w.sat[i] != sitting {
		// Not begun: it will be. Over: it does nothing for anybody.
		return w.sat[i] == waiting
	}
	if home := w.m.homes[i]; w.stopped[home] { // its CPU stands still, and it with it
		return w.stopping > 0 && int(w.stopping) != i+1 && able[w.stopping-1]
	}
	everyCPU := func(answers func(cpu int) bool) bool {
		for cpu := range w.m.Roles {
			if !answers(cpu) {
				return false
			}
		}
		return true
	}
	if p.Between() {
		return w.begins(i, able)
	}
	switch st := p.Plan[p.At]; st.Op {
	case poke.Lock:
		owner := int(w.Held[st.Mutex]) - 1
		return owner < 0 || owner != i && able[owner]
	case poke.Expect:
		if w.Told {
			return true
		}
		return w.another(i, able, poke.Raise)
	case poke.Sync, poke.GracePeriod, poke.SynchronizeRCU, poke.StopMachine:
		if st.Op == poke.StopMachine && w.stopping != 0 && int(w.stopping) != i+1 {
			return able[w.stopping-1]
		}
		return everyCPU(func(cpu int) bool { return !w.owesAnswer(cpu, i) || w.runs(cpu, i, able) })
	case poke.WaitHandlers:
		return w.drains(i, able)
	default:
		return true
	}
}

// begins tells whether a patcher between two updates can begin one: its sites are ready for
// one now, or another patcher that changes them gets on.
func (w *world) begins(i int, able *[MaxPatchers]bool) (ready bool) {
	w.patcher[i].Ready(w, func(*poke.Choice) { ready = true })
	for k := range w.m.Programs {
		ready = ready || k != i && able[k] && w.m.shares(k)
	}
	return ready
}

// drains tells whether handlers that a patcher waits for can have left one day:
// they run with interrupts off, and to their end. References that were given back
// twice never come back, unless somebody else publishes.
func (w *world) drains(i int, able *[MaxPatchers]bool) bool {
	lost := false
	w.eachRef(func(r *int8) { lost = lost || *r < 0 })
	return !lost || w.another(i, able, poke.Publish)
}

// another tells whether another patcher, one that gets on, has such a step ahead.
func (w *world) another(i int, able *[MaxPatchers]bool, op poke.Op) (there bool) {
	for k := range w.m.Programs {
		there = there || k != i && able[k] && slices.ContainsFunc(w.ahead(k), func(s poke.Step) bool { return s.Op == op })
	}
	return there
}

// owesAnswer tells whether a CPU has a request of the patcher in its box.
func (w *world) owesAnswer(cpu, patcher int) bool {
	return slices.ContainsFunc(w.box[cpu][:], func(r request) bool { return r != 0 && r.sender() == patcher })
}

// runs tells whether a CPU will take a request of the patcher. A CPU that stands still
// does not, unless the request gets through to it or a patcher resumes it.
func (w *world) runs(cpu, patcher int, able *[MaxPatchers]bool) bool {
	c := w.own(cpu)
	if c.Phase != cpus.Stopped || !w.stopped[cpu] {
		return true
	}
	if w.m.Code.Traits.MaskedRounds && w.patcher[patcher].Plan[w.patcher[patcher].At].Op == poke.Sync {
		return true
	}
	return w.stopping > 0 && able[w.stopping-1]
}

// conserved tells whether the answers that a patcher waits for are those that are
// still owed: none got lost, none came twice.
func (w *world) conserved(patcher int) bool {
	owed := 0
	for i := range w.m.Roles {
		owed += w.owed(i, patcher)
	}
	return owed == int(w.left[patcher])
}

// owed is how many answers a CPU owes a patcher, with those of the code that an NMI has
// interrupted there and of the task that is parked there.
func (w *world) owed(cpu, patcher int) (owed int) {
	n := len(w.m.Roles)
	for _, r := range w.box[cpu] {
		if r != 0 && r.sender() == patcher {
			owed++
		}
	}
	owed += owes(&w.cpu[cpu], patcher, n)
	if w.cpu[cpu].InNMI() {
		owed += owes(&w.under[cpu], patcher, n)
	}
	if t := &w.parked[cpu]; t.Quiet && int(t.Quiesce)/n == patcher {
		owed++
	}
	return owed
}

// owes is how many of them a CPU has taken and not given, among n.
func owes(c *cpus.CPU, patcher, n int) (owed int) {
	if (c.Phase == cpus.Syncing || c.Phase == cpus.Answering) && int(c.Taken.Ticket)/n == patcher {
		owed++
	}
	if t, quiet := c.Asked(); quiet && int(t)/n == patcher {
		owed++
	}
	return owed
}

// deadlock says who waits for whom.
func (w *world) deadlock(i int) *cpus.Violation {
	p := &w.patcher[i]
	if p.Between() {
		return &cpus.Violation{Property: cpus.Deadlock, CPU: w.m.homes[i],
			Why: fmt.Sprintf("patcher %d finds its sites as none of its updates begins", i)}
	}
	st := p.Plan[p.At]
	why := fmt.Sprintf("patcher %d waits at %s", i, st)
	switch st.Op {
	case poke.Lock:
		why += fmt.Sprintf(" for patcher %d, which has the lock and waits itself", w.Held[st.Mutex]-1)
	case poke.Expect:
		why += " for a message that never comes"
	default:
		for cpu := range w.m.Roles {
			if w.owesAnswer(cpu, i) {
				why += fmt.Sprintf(" for CPU %d, which stands still with interrupts off", cpu)
				break
			}
		}
	}
	return &cpus.Violation{Property: cpus.Deadlock, CPU: w.m.homes[i], Why: why}
}
