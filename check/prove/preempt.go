// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// A task that is preempted is one CPU more to the views, as an NMI is: it begins as a copy of the CPU that
// it was taken off, keeps what it is in the middle of, and makes no step. No round asks it; a grace period
// does. The CPU itself goes on with a task that stands between two calls.
//
// Some CPU that stands between two calls goes on with the task, and is then in the middle of what the task
// was in the middle of, at its site. Nothing is fetched afresh for that: what the CPU may fetch, and what it
// is asked for, is its own. The view of that CPU tells of no task, so the step asks whether there is one: some
// other view, of the same patcher and the same site, has a task that was preempted there. The task's own
// views go on with none. That a task may be taken up twice, and one that no CPU has taken up may end, only
// adds behaviour.
//
// An answer that a task owes to a grace period goes with it. So the patcher waits until no CPU and no
// preempted task owes one; asked says what a CPU was asked for itself.

// ofPreempted is the role of a task that was preempted, or that is no more.
const ofPreempted = cpus.Offline

// preempted is a task as a CPU's state.
func (m *machine) preempted(t cpus.Task) number { return m.cpu(cpus.CPU{Role: ofPreempted, Task: t}) }

// arePreempted are the states of tasks that no CPU runs.
func (m *machine) arePreempted() values {
	return m.cpus.where(func(c *cpus.CPU) bool { return c.Role == ofPreempted })
}

// oweQuiet are the states of CPUs and tasks that owe an answer to a grace period of the view's patcher, or of others.
func (m *machine) oweQuiet(which cpus.Ticket) values {
	return m.cpus.where(func(c *cpus.CPU) bool { return c.Quiet && c.Quiesce == which })
}

// preemptions are what timer interrupts and the scheduler do to a CPU that does d.
func (m *machine) preemptions(d number) (list []branch) {
	was := m.cpus.list[d]
	switch {
	case !m.preempts:
	case was.Role == ofPreempted:
		list = []branch{{name: "a preempted task is taken up", then: []update{{attr: does, to: m.preempted(cpus.Task{})}}}}
	case was.CanPark():
		list = m.parks(was)
	case was.CanUnpark():
		for _, x := range m.arePreempted().list(len(m.cpus.list)) {
			is, task := was, m.cpus.list[x].Task
			if !task.There() {
				continue
			}
			is.Unpark(task)
			list = append(list, branch{name: "cpu goes on with a preempted task", onSite: true,
				when: []cond{{someHere, []test{{does, only(x)}}}}, then: []update{{attr: does, to: m.cpu(is)}}})
		}
	}
	for i := range list {
		list[i].onCPU, list[i].rare = true, was.Role != ofPreempted
		list[i].when = slices.Insert(list[i].when, 0, cond{own, []test{{does, only(d)}}}, cond{own, []test{{home, only(0)}}})
	}
	return list
}

// parks take a task off its CPU: both go on as what they are then. A grace period that has not asked the
// CPU yet asks the task.
func (m *machine) parks(was cpus.CPU) (list []branch) {
	goes := askedQuiesce // the request that goes with the task
	if was.Quiet {
		goes = owesAnswer
	}
	for _, with := range []bool{true, false} {
		when := test{asked, only(goes)}
		if !with {
			when.in = others(when.in)
		}
		is := was
		task := is.Park(m.code, &cell{m: m})
		if with && !task.Quiet {
			task.Quiet, task.Quiesce = true, 0
		}
		cpu := branch{name: "cpu's task is preempted", then: []update{{attr: does, to: m.cpu(is)}}}
		off := branch{name: "a task is preempted", then: []update{{attr: does, to: m.preempted(task)},
			{attr: asked, to: askedNothing}, {attr: stand, to: runs}, {attr: space, to: 0}}}
		if is.Synced == present {
			cpu.then = append(cpu.then, update{attr: window, how: fresh, ofSites: every})
		}
		if with {
			cpu.then = append(cpu.then, update{attr: asked, to: askedNothing})
		}
		for _, b := range []branch{cpu, off} {
			b.when = []cond{{own, []test{when}}}
			list = append(list, b)
		}
	}
	return list
}

// askPreempted lets a grace period ask the tasks that are preempted.
func (m *machine) askPreempted(which cpus.Ticket) (then []update) {
	for _, x := range m.arePreempted().list(len(m.cpus.list)) {
		task := m.cpus.list[x].Task
		if task.Quiet {
			continue
		}
		task.Quiet, task.Quiesce = true, which
		then = append(then, update{attr: does, to: m.preempted(task), ofCPUs: every, provided: []test{{does, only(x)}}})
	}
	return then
}

// preemptionTold refuses paths beside which a copy of a CPU does not tell what a preempted task is.
func preemptionTold(p *cpus.Path) error {
	if p.NMIs || p.ComesUp {
		return &ShapeError{"preempted tasks beside NMIs, or CPUs that come online: no view tells both"}
	}
	return nil
}
