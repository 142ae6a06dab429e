// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"math/rand/v2"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// cpus.Shared in virtual time.

// Window implements cpus.Shared. A CPU that has not synchronised sees a store after
// a while all the same: how long that takes is drawn for each fetch, any time up to
// Costs.FetchLag being as likely as any other.
func (m *Machine) Window(site int, synced cpus.Seq, buf []cpus.Version) ([]cpus.Version, cpus.Promise) {
	since := m.now
	if m.text.sites[site].at+m.lag > m.now {
		since -= Nanos(m.steps.rng.Int64N(int64(m.lag)))
	}
	return m.text.window(site, synced, since, buf), m.text.sites[site].settled
}

// Peek implements cpus.Shared and poke.Ground.
func (m *Machine) Peek(site int) isa.Text { return m.text.peek(site) }

// Seq implements cpus.Shared.
func (m *Machine) Seq() cpus.Seq { return m.text.seq() }

// Settled implements cpus.Shared.
func (m *Machine) Settled(site int) cpus.Promise { return m.text.sites[site].settled }

// Changing implements cpus.Shared.
func (m *Machine) Changing(site int) cpus.Change { return m.text.changes[site] }

// Literal implements cpus.Shared and poke.Ground.
func (m *Machine) Literal(site int) uint64 { return m.text.literals[site] }

// CallOps implements cpus.Shared.
func (m *Machine) CallOps(addr uint64) cpus.Outcome { return m.ops.Call(m.called, addr) }

// Find implements cpus.Handler, and notes what it took.
func (m *Machine) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	insn, found := m.Table.Find(at, p)
	m.comparisons = p.Comparisons
	return insn, found
}

// Leave implements cpus.Handler; the patcher may be waiting for the last one.
func (m *Machine) Leave(cpu int) {
	m.Table.Leave(cpu)
	if m.patch.awaits == forHandlers && m.Drained() {
		m.resume(m.now)
	}
}

// Pending implements cpus.Shared.
func (m *Machine) Pending(cpu int, masked bool) bool {
	s := &m.cpus[cpu]
	return s.boxed && !(masked && m.code.Maskable(s.box))
}

// Take implements cpus.Shared.
func (m *Machine) Take(cpu int, masked bool) (cpus.Taken, bool) {
	if !m.Pending(cpu, masked) {
		return cpus.Taken{}, false
	}
	s := &m.cpus[cpu]
	s.boxed = false
	if int(s.box) < cpus.NumCauses {
		m.ledger.take(cpu, s.box, m.now)
	}
	return cpus.Taken{Cause: s.box}, true
}

// Answer implements cpus.Shared.
func (m *Machine) Answer(cpus.Ticket) {
	m.patch.left--
	m.answered()
}

// EnterKernel implements cpus.Shared.
func (m *Machine) EnterKernel(cpu int) cpus.Space {
	s := &m.cpus[cpu]
	was := s.space
	if s.space = 0; was.Owes() {
		m.ledger.life[cpu].caughtUp()
	}
	return was
}

// LeaveKernel implements cpus.Shared.
func (m *Machine) LeaveKernel(cpu int) {
	s := &m.cpus[cpu]
	s.space, s.outside = cpus.InUser, m.now
}

// BringUp implements cpus.Shared: there is one patcher, and one CPU at a time that is
// brought up.
func (m *Machine) BringUp(int) bool {
	if m.bringing || m.Held[poke.HotplugLock] != 0 {
		return false
	}
	m.bringing = true
	return true
}

// ComeOnline, TakeDown and EndHotplug implement cpus.Shared.
func (m *Machine) ComeOnline(cpu int) { m.cpus[cpu].online = true }

// TakeDown takes a CPU out that nobody asks anything.
func (m *Machine) TakeDown(cpu int) bool {
	if m.Pending(cpu, false) || !m.BringUp(cpu) {
		return false
	}
	m.cpus[cpu].online = false
	return true
}

// EndHotplug is the end of BringUp and of TakeDown.
func (m *Machine) EndHotplug(int) { m.bringing = false }

// Arrive implements cpus.Shared.
func (m *Machine) Arrive(cpu int) {
	m.cpus[cpu].stopped = true
	m.patch.arrived++
	m.answered()
}

// Resumed implements cpus.Shared.
func (m *Machine) Resumed(cpu int) bool { return !m.cpus[cpu].stopped }

// text is the text of all sites, with the stores of the update that is under way.
type text struct {
	sites    []site
	stored   []int32       // by site: its last store, plus 1; 0 for none
	literals []uint64      // by site
	changes  []cpus.Change // by site: the update begun last
	log      []store       // the i-th is at position first+i
	first    cpus.Seq
}

// site is the newest text: most fetches need only this half of a cache line.
type site struct {
	is      cpus.Version
	at      Nanos // when that was stored
	settled cpus.Promise
}

// longAgo is when the text from before the update was stored.
const longAgo Nanos = math.MinInt64 / 2

// store is one store to a site, with the replaced text.
type store struct {
	at    Nanos
	was   cpus.Version
	older int32 // the store before it to the same site, plus 1
	site  int32
}

func newText(n int, initial func(i int) isa.Text, literal uint64) text {
	t := text{
		sites:    make([]site, n),
		stored:   make([]int32, n),
		literals: make([]uint64, n),
		changes:  make([]cpus.Change, n),
		first:    2,
	}
	for i := range t.sites {
		t.sites[i] = site{is: cpus.Version{Seq: 1, Text: initial(i)}, at: longAgo}
		t.literals[i] = literal
	}
	return t
}

// seq is the position of the last store.
func (t *text) seq() cpus.Seq { return t.first + cpus.Seq(len(t.log)) - 1 }

// peek is what is there.
func (t *text) peek(i int) isa.Text { return t.sites[i].is.Text }

// write stores n bytes.
func (t *text) write(at Nanos, i, off, n int, text isa.Text) {
	s := &t.sites[i]
	t.log = append(t.log, store{at: at, was: s.is, older: t.stored[i], site: int32(i)})
	t.stored[i] = int32(len(t.log))
	s.is, s.at = cpus.Version{Seq: t.seq(), Text: s.is.Text.Splice(off, n, text)}, at
}

// window is what may be fetched by a CPU that synchronised at synced and sees every
// store that is older than since, the newest first.
func (t *text) window(i int, synced cpus.Seq, since Nanos, buf []cpus.Version) []cpus.Version {
	s := &t.sites[i]
	buf = append(buf[:0], s.is)
	at := s.at
	for n := t.stored[i]; at > since && buf[len(buf)-1].Seq > synced; {
		st := &t.log[n-1]
		buf = append(buf, st.was)
		if n, at = st.older, longAgo; n != 0 {
			at = t.log[n-1].at
		}
	}
	return buf
}

// forget makes the present text the oldest: no CPU can fetch an earlier version any more.
func (t *text) forget() {
	for _, st := range t.log {
		t.sites[st.site].at, t.stored[st.site] = longAgo, 0
	}
	t.first += cpus.Seq(len(t.log))
	t.log = t.log[:0]
}

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
