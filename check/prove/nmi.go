// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// A non-maskable interrupt is one CPU more to the views. It begins as a copy of the CPU that it has
// hit, at any step of that one: it may fetch the same texts, owes the same answers, and stands where
// that one stands. It takes no interrupts but firmware's rounds, goes through its own steps, and is
// gone. So rounds wait for it, as they wait for the CPU below it, which answers nothing meanwhile.
//
// The CPU below goes on in the views as if nothing had happened, which only adds behaviour: a real
// one waits until the NMI returns. A patcher does wait for an NMI on its own CPU: see atPlace. The
// NMI leaves two things to the CPU below: text that it has fetched afresh, and answers that it has
// given to firmware.

// nmis are what non-maskable interrupts do to a CPU that does d.
func (m *machine) nmis(d number) []branch {
	was := m.cpus.list[d]
	if !m.code.Disturbs(&was) {
		return nil
	}
	list := []branch{{name: "cpu is hit by an NMI"}, {name: "cpu returns from an NMI that has fetched afresh"}}
	in := was
	in.NMI()
	list[0].then = []update{{attr: does, to: m.cpu(in)}}
	afresh := update{attr: window, how: fresh, ofSites: every}
	list[1].then = []update{afresh}
	if m.code.Traits.MaskedRounds {
		list = append(list, branch{name: "cpu is asked, and an NMI fetches afresh",
			when: []cond{{own, []test{{asked, only(askedSync)}}}},
			then: []update{afresh, {attr: asked, to: owesAnswer}}})
		if was.Phase != cpus.Syncing && was.Phase != cpus.Answering && !was.Owes() {
			list = append(list, branch{name: "cpu returns from an NMI that has answered",
				when: []cond{{own, []test{{asked, only(owesAnswer)}}}}, then: []update{{attr: asked, to: askedNothing}}})
		}
	}
	for i := range list {
		list[i].onCPU, list[i].when = true, slices.Insert(list[i].when, 0, cond{own, []test{{does, only(d)}}})
	}
	return list
}

// noneAtHome keeps a patcher from going on while an NMI is on the CPU that it sits on.
func (m *machine) noneAtHome() cond {
	in := m.doingWhat((*cpus.CPU).InNMI)
	return cond{every, []test{{home, only(0)}, {does, others(in)}}}
}

// nmisTold refuses paths whose NMIs are more than a copy can tell.
func nmisTold(p *cpus.Path) error {
	switch steps := p.WaySteps(cpus.OnNMI); {
	case !p.NMIs():
		return nil
	case p.ComesUp():
		return &ShapeError{"NMIs beside CPUs that come online: no view tells whether rounds pass over the CPU below"}
	case slices.ContainsFunc([]cpus.PathStep{cpus.DoEnter, cpus.DoLeave, cpus.DoLeaveAgain}, func(s cpus.PathStep) bool {
		return slices.Contains(steps, s)
	}):
		return &ShapeError{"an NMI that says whether its CPU is in user space: the CPU below it is another one in a view, " +
			"and does not learn of it"}
	}
	return nil
}
