// SPDX-License-Identifier: Apache-2.0

package timed

import "github.com/textpoke/textpoke/cpus"

// Life is what has happened to one CPU since the machine was built, over all updates
// and the time between them.
type Life struct {
	Taken    uint64 // interrupts
	LeftOut  uint64 // rounds that found it in user space and left it out
	Owed     uint64 // of these, those that it has not made up for yet
	CaughtUp uint64 // times that it made up for them: once for all since the last time
	Quiet    Nanos  // longest time without an interrupt
	Burst    int64  // most interrupts in a millisecond
	Stolen   Nanos  // by interrupts, traps and catching up
}

// leftOut notes a round that left the CPU out, caughtUp that it made up for all of them.
func (l *Life) leftOut()  { l.LeftOut, l.Owed = l.LeftOut+1, l.Owed+1 }
func (l *Life) caughtUp() { l.CaughtUp, l.Owed = l.CaughtUp+1, 0 }

// Life is what has happened to a CPU by now.
func (m *Machine) Life(cpu int) Life {
	p := &m.ledger.page[cpu]
	l := p.addTo(m.ledger.life[cpu])
	l.Quiet = max(l.Quiet, m.now-p.since)
	l.Stolen += m.cpus[cpu].stolen
	return l
}

// lives are the sums over all CPUs of what lazy rounds left undone and what was made
// up for.
func (m *Machine) lives() (leftOut, caughtUp uint64) {
	for i := range m.ledger.life {
		leftOut += m.ledger.life[i].LeftOut
		caughtUp += m.ledger.life[i].CaughtUp
	}
	return leftOut, caughtUp
}

// stole notes what was taken from the CPUs, before it is counted anew.
func (m *Machine) stole() {
	for i := range m.cpus {
		s := &m.cpus[i]
		m.ledger.life[i].Stolen += s.stolen
		s.tally, s.stolen = cpus.Tally{}, 0
	}
}
