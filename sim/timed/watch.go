// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// watched is what a listener needs to know of a CPU to say how long something took.
type watched struct{ trap, interrupt Nanos }

// saw tells the listener what a step of a CPU, and what it takes, brought to an end.
func (m *Machine) saw(i int, s *cpuState, before cpus.Phase, event cpus.Event, cost Nanos) {
	t := m.listener
	switch {
	case t == nil:
	case event == cpus.Trap:
		s.watched.trap = m.now
	case before == cpus.Returning || before == cpus.Missed:
		t.Trap(i, int64(s.watched.trap), int64(m.now+cost), before == cpus.Returning)
	case before == cpus.Interrupted:
		s.watched.interrupt = m.now
	case before == cpus.Answering && int(s.cpu.Taken.Cause) < cpus.NumCauses:
		t.Interrupt(m.patch.round, i, s.cpu.Taken.Cause, int64(s.watched.interrupt), int64(m.now))
	}
}

// sawRound tells it of a round.
func (m *Machine) sawRound(cause cpus.Cause) {
	m.rounds++
	m.patch.round = m.rounds
	if t := m.listener; t != nil {
		t.Round(m.patch.round, m.patch.home, cause, m.patch.left, int64(m.now))
	}
}

// sawStep tells it of a step of the plan that is over at a time.
func (m *Machine) sawStep(cpu int, st poke.Step, until Nanos) {
	t, p := m.listener, &m.patch
	if t == nil {
		return
	}
	switch st.Op {
	case poke.Publish:
		t.Batch(int64(until), int(st.To-st.From))
	case poke.Unpublish:
		t.Batch(int64(until), 0)
	}
	t.Step(cpu, st.Name(), int64(p.stepped), int64(until))
	p.stepped = until
}
