// SPDX-License-Identifier: Apache-2.0

package timed

import (
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
