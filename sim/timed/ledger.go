// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// burstWindow is the length of the bins in which bursts are counted.
const burstWindow Nanos = 1e6

// ledger counts interrupts, as cpus.Ledger does, by the machine's clock. It counts sent
// and taken ones separately, so that conservation is a check.
type ledger struct {
	sent cpus.Counts // rounds and their targets; pages have the taken ones
	page []page      // by CPU
	life []Life      // by CPU, as of the beginning of the update
}

// page is the ledger of one CPU in the current update. An interrupt of a round changes
// one cache line of it.
type page struct {
	bin   Nanos // the burstWindow that inBin counts
	inBin int64
	burst int64 // most of them
	last  Nanos // the last interrupt, or the beginning
	gap   Nanos // the longest time without one
	taken [cpus.NumCauses]uint64

	// Of all its life, in which nothing is a pause.
	since Nanos // the last interrupt
	quiet Nanos // the longest time without one
}

// open starts a new page: counts are of one update.
func (l *ledger) open(cpuCount int, now Nanos) {
	if l.life == nil {
		l.life, l.page = make([]Life, cpuCount), make([]page, cpuCount)
	}
	l.sent = cpus.NewCounts(cpuCount)
	for i := range l.page {
		p := &l.page[i]
		l.life[i] = p.addTo(l.life[i])
		*p = page{bin: -1, last: now, since: p.since, quiet: p.quiet}
	}
}

// counts is what the ledger says of all CPUs, gaps the longest times without an
// interrupt.
func (l *ledger) counts() (c cpus.Counts, gaps []Nanos) {
	c, gaps = l.sent, make([]Nanos, len(l.page))
	for i := range l.page {
		p := &l.page[i]
		c.Taken[i], c.Burst[i], gaps[i] = p.taken, p.burst, p.gap
	}
	return c, gaps
}

// addTo adds the page to a CPU's life.
func (p *page) addTo(l Life) Life {
	for _, n := range p.taken {
		l.Taken += n
	}
	l.Burst = max(l.Burst, p.burst)
	l.Quiet = p.quiet
	return l
}

// take counts an interrupt taken.
func (l *ledger) take(cpu int, cause cpus.Cause, now Nanos) {
	p := &l.page[cpu]
	p.taken[cause]++
	if bin := now / burstWindow; bin != p.bin {
		p.bin, p.inBin = bin, 0
	}
	p.inBin++
	p.burst = max(p.burst, p.inBin)
	p.pause(now)
	p.quiet, p.since = max(p.quiet, now-p.since), now
}

// pause ends a stretch without interrupts.
func (p *page) pause(now Nanos) {
	p.gap = max(p.gap, now-p.last)
	p.last = now
}

// pause ends it for all CPUs, and goOn begins another one: the time between them is
// no part of the update.
func (l *ledger) pause(now Nanos) {
	for i := range l.page {
		l.page[i].pause(now)
	}
}

func (l *ledger) goOn(now Nanos) {
	for i := range l.page {
		l.page[i].last = now
	}
}

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

// lives are two sums over all CPUs: of lazy rounds that left a CPU out, and of those that it
// made up for.
func (m *Machine) lives() (leftOut, caughtUp uint64) {
	for i := range m.ledger.life {
		leftOut += m.ledger.life[i].LeftOut
		caughtUp += m.ledger.life[i].CaughtUp
	}
	return leftOut, caughtUp
}

// watched is what a listener needs to know of a CPU to say how long something took.
type watched struct{ trap, interrupt Nanos }

// saw tells the listener which trap or interrupt a step of a CPU has ended, with the step's cost.
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

// sawStep tells the listener of a step of the plan that is over at a time.
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
