// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// Coverage is what a search has made happen, in the interleavings that its
// reductions leave: safe says little of a machine in which it does not happen.
type Coverage struct {
	Steps  uint64   // of CPUs, without looks for interrupts
	Traps  uint64   // taken
	Places int      // of programs, and of what CPUs do, that were reached
	Of     int      // so many that there are in this model
	Never  []string // those that were not reached, in words
}

// reached is what has happened in a world so far, and where. It is no state.
type reached struct {
	Steps, Traps uint64
	Phases       uint64                         // bits
	Ways         [cpus.NumSections]uint64       // by way: bits, one a step
	Plans        [MaxPatchers][planWords]uint64 // by program: bits, one a step
}

const planWords = maxSteps/64 + 1

// cpu counts a step of a CPU that was in some state.
func (r *reached) cpu(was *cpus.CPU, e cpus.Event) {
	r.Steps++
	r.Phases |= 1 << was.Phase
	if way, at := was.OnWay(); was.Phase == cpus.Crossing {
		r.Ways[way] |= 1 << at
	}
	if e == cpus.Trap {
		r.Traps++
	}
}

func (r *reached) add(o *reached) {
	r.Steps += o.Steps
	r.Traps += o.Traps
	r.Phases |= o.Phases
	for i := range r.Ways {
		r.Ways[i] |= o.Ways[i]
	}
	for i := range r.Plans {
		for k := range r.Plans[i] {
			r.Plans[i][k] |= o.Plans[i][k]
		}
	}
}

// reached is what all workers have reached; none may be at work.
func (s *search) reached() reached {
	sum := s.before
	for _, w := range s.workers {
		sum.add(&w.e.w.reached)
	}
	return sum
}

// coverage holds what was reached against what there is.
func (m *Model) coverage(r reached) Coverage {
	c := Coverage{Steps: r.Steps, Traps: r.Traps}
	place := func(there bool, name string) {
		if c.Of++; there {
			c.Places++
		} else {
			c.Never = append(c.Never, name)
		}
	}
	for i, p := range m.Programs {
		for at := range p.Plan {
			name := p.place(at)
			if len(m.Programs) > 1 {
				name = fmt.Sprintf("patcher %d: %s", i, name)
			}
			place(r.Plans[i][at/64]>>(at%64)&1 != 0, name)
		}
	}
	m.eachPlace(func(ph cpus.Phase, name string) { place(r.Phases>>ph&1 != 0, name) })
	m.eachWay(func(way cpus.Section, at int, name string) { place(r.Ways[way]>>at&1 != 0, name) })
	return c
}

// eachPlace calls f with what CPUs of this model may come to do, as far as path, plans
// and roles say: the phase and its name.
func (m *Model) eachPlace(f func(ph cpus.Phase, name string)) {
	traps, user := m.traps(), slices.Contains(m.Roles, cpus.Isolated)
	here := [cpus.NumSections]bool{cpus.AtSite: true, cpus.InHandler: traps, cpus.OnMiss: traps}
	path := &m.Code.Path
	for in := range cpus.Section(cpus.NumSections) {
		for _, s := range path.Program(in).Steps() {
			if ph, ok := path.PhaseOf(in, s); ok && here[in] {
				f(ph, fmt.Sprintf("%s: %s", in, s))
			}
		}
	}
	if m.comesUp() {
		f(cpus.Down, "CPU "+cpus.Down.Does())
	}
	rounds, stops := m.executes(poke.Sync), m.executes(poke.StopMachine)
	grace := m.executes(poke.GracePeriod) || m.executes(poke.SynchronizeRCU)
	for _, c := range []struct {
		ph   cpus.Phase
		here bool
	}{
		{cpus.Asleep, user || slices.Contains(m.Roles, cpus.Idle)},
		{cpus.Interrupted, rounds || stops || grace},
		{cpus.Syncing, rounds || stops && m.Code.Traits.InterruptSyncs},
		{cpus.Answering, rounds || stops}, // grace periods are answered between two calls
		{cpus.Arriving, stops}, {cpus.Stopped, stops}, {cpus.Resuming, stops},
		{cpus.Inside, slices.ContainsFunc(m.codec.Inside, func(b []cpus.Executed) bool { return len(b) > 0 })},
		{cpus.Signalled, traps && path.Signals},
		{cpus.Doubting, m.Code.Named() && m.executes(poke.Settle)},
	} {
		if c.here {
			f(c.ph, "CPU "+c.ph.Does())
		}
	}
}

// comesUp tells whether some CPU is offline, now and then.
func (m *Model) comesUp() bool {
	return m.Code.Path.ComesUp && (slices.Contains(m.Roles, cpus.Offline) || m.Code.Path.GoesDown)
}

// eachWay calls f with every step of the ways that CPUs of this model may go, but not
// with steps of early calls, and not with the one by which a CPU begins its way down.
func (m *Model) eachWay(f func(way cpus.Section, at int, name string)) {
	user := slices.Contains(m.Roles, cpus.Isolated)
	here := [cpus.NumSections]bool{
		cpus.OnEntry: user, cpus.OnExit: user, cpus.OnNMI: true, cpus.OnUp: m.comesUp(), cpus.OnDown: true,
	}
	for way := range cpus.Section(cpus.NumSections) {
		for at, s := range m.Code.Path.WaySteps(way) {
			if here[way] && s != cpus.DoCallEarly && s != cpus.DoGoOffline {
				f(way, at, fmt.Sprintf("%s: %s", way, s))
			}
		}
	}
}

// RestsOn is what a safe verdict takes for granted of the machine: isa.Traits.RestsOn
// where CPUs read data behind the text that they execute, a literal or what a handler
// looks up; "" otherwise.
func (m *Model) RestsOn() string {
	if m.Code.Named() || m.traps() {
		return m.Code.Traits.RestsOn
	}
	return ""
}

// Assumes says in one line which assumptions every verdict rests on: the workload, the fetch model, the lock that
// keeps several patchers apart, whether the return from a trap fetches afresh, and the parts that are not modelled.
func (m *Model) Assumes() string {
	line := fmt.Sprintf("workload %s; fetch %s; ", m.Workload(), m.Code.Fetch)
	switch at := m.Code.Sites[0]; m.Code.Arch.Grain(at) {
	case 1: // with weak fetches every byte may be of any version, wherever it lies
		if m.Code.Fetch != cpus.Weak {
			line += fmt.Sprintf("sites at %d mod 8; ", at%8) // see Crossings
		}
	case 2: // a parcel of riscv64's, where kernels have no site
		line += fmt.Sprintf("sites at %d mod 8; ", at%8)
	}
	switch {
	case len(m.Programs) == 1:
	case !m.anyStep(func(st poke.Step) bool { return st.Op == poke.Lock && st.Mutex == poke.TextMutex }):
		line += "no text_mutex; "
	case m.around:
		line += "text_mutex held around every update; "
	default:
		line += "text_mutex as the plan takes it; "
	}
	switch {
	case !m.traps():
	case m.Code.Path.Syncs:
		line += "the return from a trap fetches afresh; "
	default:
		line += "the return from a trap does not fetch afresh; "
	}
	if m.Code.Path.NMIs {
		return line + "not modelled: cache maintenance, alias mappings, nested traps"
	}
	return line + "not modelled: cache maintenance, alias mappings, non-maskable interrupts, nested traps"
}

// traps tells whether a CPU can come to a breakpoint: whether a program writes one, or
// some text has one in it.
func (m *Model) traps() bool {
	if m.anyStep(func(st poke.Step) bool { return st.Op == poke.Write && st.Part == poke.Breakpoint }) {
		return true
	}
	for site, list := range m.texts {
		for _, t := range list {
			if m.Code.Act(site, t).Kind == isa.Breakpoint {
				return true
			}
		}
	}
	return false
}

func (m *Model) executes(op poke.Op) bool {
	return m.anyStep(func(st poke.Step) bool { return st.Op == op })
}

func (m *Model) anyStep(is func(poke.Step) bool) bool {
	return slices.ContainsFunc(m.Programs, func(p Program) bool { return slices.ContainsFunc(p.Plan, is) })
}

// Promises is what every program promises of its updates that are over: "new text", no
// CPU executes what was replaced; or "nothing", as where no round is sent.
func (m *Model) Promises() string {
	for _, p := range m.Programs {
		if !slices.ContainsFunc(p.Plan, func(s poke.Step) bool { return s.Op == poke.Settle }) {
			return "nothing"
		}
	}
	return "new text"
}
