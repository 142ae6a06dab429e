// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
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

// Find implements cpus.Handler, and notes what it took. A site that was looked up in
// this batch before is not searched for again: that would find and take the same.
func (m *Machine) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	l := &m.lookups[m.cpus[m.padOf].cpu.Site]
	if l.batch == m.batch {
		m.comparisons = l.comparisons
		return l.insn, cpus.Hit
	}
	insn, found := m.Table.Find(at, p)
	m.comparisons = p.Comparisons
	if found == cpus.Hit {
		*l = lookup{insn, m.comparisons, m.batch}
	}
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

// ComeOnline and CameUp implement cpus.Shared.
func (m *Machine) ComeOnline(cpu int) { m.cpus[cpu].online = true }
func (m *Machine) CameUp(int)         { m.bringing = false }

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

// site is what is there: all that most fetches need, in half a cache line.
type site struct {
	is      cpus.Version
	at      Nanos // when that was stored
	settled cpus.Promise
}

// longAgo is when the text from before the update was stored.
const longAgo Nanos = math.MinInt64 / 2

// store is one store to a site, and what it replaced.
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

// settle promises what is there.
func (t *text) settle(i int, want isa.Text) {
	s := &t.sites[i]
	s.settled = s.settled.Of(s.is, want, t.seq())
}

// forget makes the present text the oldest: no CPU can fetch an earlier version any more.
func (t *text) forget() {
	for _, st := range t.log {
		t.sites[st.site].at, t.stored[st.site] = longAgo, 0
	}
	t.first += cpus.Seq(len(t.log))
	t.log = t.log[:0]
}
