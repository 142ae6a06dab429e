// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math/rand/v2"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// line is the cache line of the reference count that all handlers change: bp_desc.refs
// of arch/x86/kernel/alternative.c, Linux 5.6 to 6.15 (1f676247f36a, 4334336e769b).
//
// One CPU at a time has it, the others wait for it. Each visit costs a transfer, unless the line is
// here already. A handler that leaves is through after one visit: an atomic decrement cannot fail.
// One that enters reads the count, and compares and exchanges until the count is as at its visit
// before, or 0 (atomic_inc_not_zero, raw_atomic_fetch_add_unless in
// include/linux/atomic/atomic-arch-fallback.h). A handler that comes in or leaves between two
// visits of another one spoils that one's attempt: with n CPUs that wait in turn, all attempts of a
// lap fail but one. Interrupts are off meanwhile, so that rounds wait.
//
// Lines do not keep a strict order. Config.OutOfTurn is the share of visits in which
// the one that has waited longest changes places with any of those that wait.
type line struct {
	waiting  []int32 // a ring; a CPU is in it once
	first, n int
	owner    int32 // who has the line, or had it last
	moving   bool  // it is on its way to somebody
	rng      *rand.Rand
}

// UsuallyOutOfTurn is an assumption: no measurement of it is known. In strict order laps repeat
// themselves, and a few CPUs keep the others out for seconds, which the jitter of any machine would
// end.
const UsuallyOutOfTurn = 0.001

// visitor is what a CPU knows that wants the line.
type visitor struct {
	since   Nanos // it wants it
	seen    int32 // the count that it saw at its last visit
	read    bool  // there was one
	granted bool  // its next step changes the count
}

func newLine(n int, rng *rand.Rand) line {
	return line{waiting: make([]int32, n), owner: -1, rng: rng}
}

// at is the place of the k-th that waits.
func (l *line) at(k int) *int32 { return &l.waiting[(l.first+k)%len(l.waiting)] }

func (l *line) push(cpu int32) {
	*l.at(l.n) = cpu
	l.n++
}

// pop takes who is next out of those that wait; there must be one.
func (l *line) pop(outOfTurn float64) int32 {
	first := l.at(0)
	if outOfTurn > 0 && l.rng.Float64() < outOfTurn {
		other := l.at(l.rng.IntN(l.n))
		*first, *other = *other, *first
	}
	l.first = (l.first + 1) % len(l.waiting)
	l.n--
	return *first
}

// contends tells whether a CPU's next step changes the count that all share, and
// needs the line first.
func (m *Machine) contends(s *cpuState) bool {
	return m.cfg.Refs == int3.SharedRef && (s.cpu.Phase == cpus.Trapped || s.cpu.Phase == cpus.Leaving) && !s.line.granted
}

// join lets a CPU wait for the line.
func (m *Machine) join(i int, s *cpuState) {
	s.active = true
	m.free(s, false)
	s.line.since = m.now
	m.line.push(int32(i))
	if !m.line.moving {
		m.pass()
	}
}

// pass sends the line to the next CPU.
func (m *Machine) pass() {
	l := &m.line
	if l.moving = l.n > 0; !l.moving {
		return
	}
	next := l.pop(m.cfg.OutOfTurn)
	s, cost := &m.cpus[next], Nanos(0)
	if next != l.owner {
		cost += nanos(m.costs.LineTransfer)
	}
	if s.line.read || s.cpu.Phase == cpus.Leaving { // a load takes no time of its own
		cost += nanos(m.costs.Reference)
	}
	m.ask(m.now+cost, evLine, int(next))
}

// visit is the line's arrival at a CPU.
func (m *Machine) visit(i int) {
	s := &m.cpus[i]
	m.line.owner = int32(i)
	if !m.attempt(s) {
		m.line.push(int32(i))
		m.pass()
		return
	}
	m.pass()
	s.stolen += m.now - s.line.since
	s.active, s.line.granted = false, true
	m.run(i, true)
}

// attempt tells whether a CPU changes the count at this visit, or need not.
func (m *Machine) attempt(s *cpuState) bool {
	v, count := &s.line, m.References()
	done := s.cpu.Phase == cpus.Leaving || count == 0 || v.read && v.seen == count
	v.read, v.seen = !done, count
	return done
}
