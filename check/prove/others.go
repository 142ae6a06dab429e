// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// Several patchers, each with sites and an ops of its own, run the same program. A view is of a site, and of the
// patcher that it belongs to. The others are what they do to that view:
//
//   - One of them may have text_mutex while the view's patcher has not; the place says so. It publishes and takes back
//     batches without the view's site, and gives the mutex back when none is published. The same is asked of the view's
//     own patcher, as a property: batch-left.
//   - They ask the CPU for something whenever it looks for interrupts. They wait for a grace period only while the view's
//     patcher is outside of ftrace_lock. Their requests have tickets of their own.
//   - A CPU at another patcher's site looks as if it stood between two calls. References that its handler holds are not
//     counted, so the view's patcher waits for fewer. Where handlers share a count, the count may be any.
//
// Each of these only adds behaviour. So nothing breaks at the sites of the view's patcher, however many others there are.
// All patchers run one program, so nothing breaks at any site.

// ofOthers is the ticket of a request that another patcher sends.
const ofOthers cpus.Ticket = 1

// batchLeft is broken where text_mutex is given back while a batch is published, or referenced by its patcher.
const batchLeft cpus.Property = "batch-left"

// severalTold refuses paths beside which others are more than what they do to a view.
func severalTold(s *explore.Setup, p *cpus.Path) error {
	if s.Patchers > 1 && (p.NMIs || p.ComesUp) {
		return &ShapeError{"several patchers beside NMIs, or CPUs that come online: no view tells both"}
	}
	return nil
}

// locked is a run of pieces between taking a lock and giving it back.
func locked(mu poke.Mutex, inner ...[]piece) []piece {
	return slices.Concat(steps([]poke.Step{{Op: poke.Lock, Mutex: mu}}), slices.Concat(inner...),
		steps([]poke.Step{{Op: poke.Unlock, Mutex: mu}}))
}

// promised is a plan that takes text_mutex itself, with its promise: made of the sites whose turn it is where text_mutex is
// given back for the last time. Behind that there may be no step but such as give other locks back.
func promised(plan, promise []piece) ([]piece, error) {
	last := -1
	for i, x := range plan {
		if x.kind == atStep && x.step.Op == poke.Unlock && x.step.Mutex == poke.TextMutex {
			last = i
		}
	}
	for _, x := range plan[last+1:] {
		if x.kind == atStep && x.step.Op != poke.Unlock {
			return nil, &ShapeError{x.step.Name() + " without text_mutex, behind what changes text: its promise is made before"}
		}
	}
	promise = slices.Clone(promise)
	for i := range promise {
		promise[i].level = plan[last].level
	}
	return slices.Insert(slices.Clone(plan), last, promise...), nil
}

// takes tells whether a plan takes text_mutex, and gives it back, itself.
func takes(plan []piece) bool {
	return slices.ContainsFunc(plan, func(x piece) bool {
		return x.kind == atStep && x.step.Op == poke.Unlock && x.step.Mutex == poke.TextMutex
	})
}

// besideOthers are the updates with the locks that keep patchers apart: text_mutex around what changes text, unless the plan
// takes it, and ftrace_lock around what waits for the ops' callers and releases it.
func (x updates) besideOthers(s *explore.Setup) (updates, error) {
	lock := []poke.Step{{Op: poke.Lock, Mutex: poke.TextMutex}}
	around := s.Protocol.Locks != poke.LocksOfPlan && len(s.Mutation.OnProgram(lock)) > 0
	text := func(plan, promise []piece) ([]piece, error) {
		switch {
		case takes(plan):
			return promised(plan, promise)
		case around:
			return locked(poke.TextMutex, plan, promise), nil
		}
		return slices.Concat(plan, promise), nil
	}
	enable, err := text(x.enable, x.settle)
	disable, back := text(x.disable, x.back)
	return updates{attach: x.attach, enable: enable, disable: disable,
		release: locked(poke.FtraceLock, x.grace, x.release)}, cmp.Or(err, back)
}

// shares refuses steps that several patchers may make at a time, and that are about what they share.
func (p *program) shares(several bool) error {
	for _, it := range p.items {
		if it.kind != atStep || !several {
			continue
		}
		lock := poke.TextMutex
		switch st := p.plans.own[it.at]; st.Op {
		case poke.GracePeriod, poke.SynchronizeRCU:
			lock = poke.FtraceLock
			fallthrough
		case poke.Publish, poke.Unpublish, poke.WaitHandlers, poke.Clear:
			if !it.held.has(lock) {
				return &ShapeError{fmt.Sprintf("%s without %s: another patcher may do so, too", st.Name(), lock)}
			}
		}
	}
	return nil
}

// stepsOfOthers are what other patchers do while the view's own is at a place.
func (m *machine) stepsOfOthers(p number) (list []branch) {
	s := m.places.list[p]
	it := m.program.items[s.item]
	if !m.several || it.held.has(poke.TextMutex) {
		return nil
	}
	step := func(name string, when []cond, then ...update) *branch {
		list = append(list, branch{name: "another patcher " + name, then: then,
			when: append([]cond{{own, []test{{place, only(p)}}}}, when...)})
		return &list[len(list)-1]
	}
	if m.preempts && !it.held.has(poke.FtraceLock) {
		step("asks preempted tasks", nil, m.askPreempted(ofOthers)...)
	}
	if m.code.Path.Tells {
		owes, _ := cpus.InUser.LeaveOut()
		step("leaves a CPU out", []cond{{own, []test{{space, only(number(cpus.InUser))}}}},
			update{attr: space, to: number(owes)}).onCPU = true
	}
	goes := s
	if goes.beside = !s.beside; !s.beside {
		step("takes text_mutex", nil, update{attr: place, to: m.places.index(goes)})
		return list
	}
	unpublished := cond{own, []test{{published, only(0)}}}
	unreferenced := cond{own, []test{{reference, only(0)}}}
	step("gives text_mutex back", []cond{unpublished, unreferenced}, update{attr: place, to: m.places.index(goes)})
	if !m.does(poke.Publish) {
		return list
	}
	forgotten := update{attr: entry, to: noEntry, ofSites: every}
	step("publishes", nil, update{attr: published, to: 1}, update{attr: reference, to: 1}, forgotten)
	step("unpublishes", nil, update{attr: reference, to: 0})
	step("clears its batch", nil, update{attr: published, to: 0}, forgotten)
	if m.refs != int3.NoRef {
		b := step("publishes", []cond{{some, []test{{does, m.holding()}}}})
		b.broken, b.why = countOverwritten, "a handler holds a reference, and another patcher sets the count anew"
	}
	return list
}

// does tells whether the program has a step of a kind.
func (m *machine) does(op poke.Op) bool {
	return slices.ContainsFunc(m.program.plans.own, func(st poke.Step) bool { return st.Op == op })
}

// asks is whether some other patcher has asked the CPU for something.
func (c *cell) asks(masked bool) bool {
	return c.m.several && (!masked || c.m.code.Traits.MaskedRounds) && c.Ask(2) == 1
}

// takeOthers takes what another patcher has asked for.
func (c *cell) takeOthers(masked bool) cpus.Taken {
	causes := []cpus.Cause{cpus.Sync}
	if !masked {
		if c.m.does(poke.StopMachine) {
			causes = append(causes, cpus.Stop)
		}
		if c.m.does(poke.SynchronizeRCU) {
			causes = append(causes, cpus.QuiesceCPUs)
		}
		if !c.m.program.items[c.m.places.list[c.read(place)].item].held.has(poke.FtraceLock) {
			causes = append(causes, cpus.Quiesce)
		}
	}
	c.b.rare = true
	return cpus.Taken{Cause: causes[c.Ask(len(causes))], Ticket: ofOthers}
}

// standForOthers are the states of CPUs that are to stand still.
func (m *machine) standForOthers() values {
	return m.cpus.where(func(c *cpus.CPU) bool {
		is := *c
		is.Quiet = false
		return is.Owes()
	})
}
