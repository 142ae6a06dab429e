// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// looksForInterrupts is the step of a CPU at a border.
const looksForInterrupts = "cpu looks for interrupts"

// stepsOfCPU are what the next step of a CPU that does d can amount to: in a view, or
// in any state where there is none.
func (m *machine) stepsOfCPU(d number, of *view) []branch {
	was := m.cpus.list[d]
	out, c := slices.Concat(m.nmis(d), m.preemptions(d)), &cell{m: m, of: of}
	if was.Over(m.code) || was.Role == ofPreempted {
		return out
	}
	here := []cond{{own, []test{{does, only(d)}}}}
	if !was.InNMI() { // it comes to a CPU that a patcher sits on, too
		here = append(here, cond{own, []test{{home, only(0)}}})
	}
	looks := []bool{false}
	if was.AtBorder() || was.Phase == cpus.Stopped {
		looks = []bool{true, false}
	}
	for _, look := range looks {
		name := "cpu " + was.Phase.Does()
		if look && was.AtBorder() {
			name = looksForInterrupts
		}
		for more := true; more; more = c.Next() {
			c.begin(branch{name: name, onCPU: true, onSite: true, when: append(make([]cond, 0, 8), here...)})
			is := was
			if is.SkipPoll(); look {
				is.Repoll()
			}
			m.pad.Forget()
			cpus.Step(&is, m.code, c, c, m.pad)
			if m.pad.Found {
				c.b.broken, c.b.why = m.pad.Violation.Property, m.pad.Violation.Why
				out = append(out, c.b)
				continue
			}
			if is.Synced == present {
				c.effect(update{attr: window, how: fresh, ofSites: every})
			}
			if to := m.cpu(is); to != d {
				c.write(does, to)
			}
			if b := c.end(); len(b.then) > 0 {
				out = append(out, b)
			}
		}
	}
	return out
}

// cpu numbers a CPU's state, without its positions in histories: windows have these.
func (m *machine) cpu(c cpus.CPU) number {
	c.Synced, c.Site = 1, 0
	c.Repoll()
	switch {
	case c.Promise.Seq() == 0:
		c.Promise = 0
	case c.Promise != promisedOnce:
		c.Promise = promisedNow
	}
	canonical, under := cpus.CPU{Role: c.Role}, cpus.CPU{}
	m.codec.Unpack(m.codec.Pack(&c), &canonical)
	m.codec.UnpackWay(m.codec.PackWay(&c, &under), &canonical, &under)
	return m.cpus.index(canonical)
}

// about tells whether a CPU is in the middle of something about a site.
func (m *machine) about(d number) bool {
	c := m.cpus.list[d]
	_, about := m.codec.Site(m.codec.Pack(&c))
	return about
}

// elsewhere is what a CPU looks like from a site that it is not about: as if it stood
// between two calls.
func (m *machine) elsewhere(d number) number {
	if !m.about(d) {
		return d
	}
	c := m.cpus.list[d]
	switch c.Phase {
	case cpus.Interrupted, cpus.Syncing, cpus.Answering:
		c.Back = cpus.Boundary
	default:
		c.Phase = cpus.Boundary
	}
	return m.cpu(c)
}

// older is what a CPU does when what was promised of its site is so no more.
func (m *machine) older(d number) number {
	c := m.cpus.list[d]
	if c.Promise == promisedNow {
		c.Promise = promisedOnce
	}
	return m.cpu(c)
}

// holding is what CPUs do whose handlers hold a reference.
func (m *machine) holding() values {
	return m.cpus.where(func(c *cpus.CPU) bool { return m.code.Path.Holds(c.Phase) })
}

// hotplugging are the steps of a CPU that is brought up or taken down, by a task that holds the lock of hotplug.
func (m *machine) hotplugging() values {
	return m.cpus.where(func(c *cpus.CPU) bool { way, _ := c.OnWay(); return way == cpus.OnUp || way == cpus.OnDown })
}

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
	list := []branch{{name: "cpu is hit by an NMI", rare: true}, {name: "cpu returns from an NMI that has fetched afresh"}}
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
	in := m.cpus.where((*cpus.CPU).InNMI)
	return cond{every, []test{{home, only(0)}, {does, others(in)}}}
}

// nmisTold refuses paths whose NMIs are more than a copy can tell.
func nmisTold(p *cpus.Path) error {
	switch steps := p.WaySteps(cpus.OnNMI); {
	case !p.NMIs:
		return nil
	case p.ComesUp:
		return &ShapeError{"NMIs beside CPUs that come online: no view tells whether rounds pass over the CPU below"}
	case slices.ContainsFunc([]cpus.PathStep{cpus.DoEnter, cpus.DoLeave, cpus.DoLeaveAgain}, func(s cpus.PathStep) bool {
		return slices.Contains(steps, s)
	}):
		return &ShapeError{"an NMI that says whether its CPU is in user space: the CPU below it is another one in a view, " +
			"and does not learn of it"}
	}
	return nil
}
