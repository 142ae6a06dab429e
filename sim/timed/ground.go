// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// poke.Ground in virtual time, for the only patcher: a wait for another patcher never ends.

// Store implements poke.Ground.
func (m *Machine) Store(site, off, n int, t isa.Text) {
	site, broken := m.rules.Lands(m.Commons, m.patch.home, site, n, t)
	m.breaks(broken)
	bp := m.code.Traits.BreakpointLen
	was := m.text.peek(site).Slice(0, bp) == m.code.Arch.Breakpoint()
	m.text.write(m.now, site, off, n, t)
	is := m.text.peek(site).Slice(0, bp) == m.code.Arch.Breakpoint()
	switch {
	case is && !was:
		m.expose.begin(m.now)
	case was && !is:
		m.expose.end(m.now)
	}
	if site < m.cfg.Called {
		m.stored(site, is)
	}
}

// stored tells the calls of a store to a site, which every call meets from now on or not.
func (m *Machine) stored(site int, meets bool) {
	o := m.leads(site)
	m.calls.stored(m.now, int32(site), meets || o == cpus.CalledFreed || o == cpus.CalledWild, o == cpus.CalledTracer)
	m.hotter()
}

// StoreLiteral implements poke.Ground. A literal is data, and every CPU sees the store at
// once: calls have to be executed only if they meet an ops that may not be called.
func (m *Machine) StoreLiteral(site int, ops uint64) {
	m.text.literals[site] = ops
	if site >= m.cfg.Called {
		return
	}
	switch o := m.leads(site); {
	case o == cpus.CalledFreed, o == cpus.CalledWild, m.calls.heat[site].meets:
		m.stored(site, m.text.peek(site).Slice(0, m.code.Traits.BreakpointLen) == m.code.Arch.Breakpoint())
	default:
		m.calls.change(m.now, int32(site), func(h *heat) { h.enabled = o == cpus.CalledTracer })
	}
}

// Unsettle implements poke.Ground.
func (m *Machine) Unsettle(site int) {
	s := &m.text.sites[site].settled
	*s = s.TakenBack()
}

// Begin implements poke.Ground.
func (m *Machine) Begin(site int, c cpus.Change) { m.text.changes[site] = c }

// Settle implements poke.Ground. While a store for the site waits, every call breaks the promise
// until the store arrives.
func (m *Machine) Settle(site int, want isa.Text) {
	s := &m.text.sites[site]
	s.settled = s.settled.Of(s.is, want, m.text.seq())
	if site < m.cfg.Called && (m.patch.Holds(int32(site), false) || m.patch.Holds(int32(site), true)) {
		m.stored(site, true)
	}
}

// Share implements poke.Ground.
func (m *Machine) Share(a poke.Access) bool {
	if a.Takes(poke.HotplugLock) && m.bringing {
		return false
	}
	yes, broken := m.rules.Share(&m.Commons, a, 0, m.patch.home)
	m.breaks(broken)
	return yes
}

// breaks reports what is broken, if anything is.
func (m *Machine) breaks(broken *cpus.Violation) {
	if broken != nil {
		m.Report(*broken)
	}
}

// Publish implements poke.Ground.
func (m *Machine) Publish(_ int, patches []poke.Patch, undo bool) {
	m.breaks(m.rules.Overflows(m.patch.home, patches))
	m.batch++
	m.Table.Publish(poke.Batch(m.code, m.cfg.Lookup, m.cfg.Filling, patches, undo))
	sites := make([]int32, 0, len(patches))
	for i := range patches {
		if int(patches[i].Site) < m.cfg.Called {
			sites = append(sites, patches[i].Site)
		}
	}
	m.calls.publish(m.now, sites)
	m.hotter()
}

// Unpublish implements poke.Ground: handlers that come later may find no batch.
func (m *Machine) Unpublish() {
	m.batch++
	m.Table.Unpublish()
}

// Clear implements poke.Ground: calls of the batch's sites meet nothing any more.
func (m *Machine) Clear() {
	m.batch++
	m.Table.Clear()
	m.calls.publish(m.now, nil)
}

// Send implements poke.Ground.
func (m *Machine) Send(c cpus.Cause, lazy bool) {
	p := &m.patch
	p.began = m.now
	switch {
	case c == cpus.Sync:
		m.interrupt(p.cause, lazy, 0)
	case int(c) < cpus.NumCauses:
		m.interrupt(c, lazy, 0)
	default:
		m.quiesce(c, false)
	}
}

// interrupt sends a round, to one target after the other. Each takes it when it gets
// there; extra is the additional time of each.
func (m *Machine) interrupt(c cpus.Cause, lazy bool, extra Nanos) {
	p, costs := &m.patch, m.costs
	at := m.now + nanos(costs.RoundSetup)
	p.sent, p.left = c, 0
	for i := range m.cpus {
		s := &m.cpus[i]
		if i == p.home || !s.online {
			continue
		}
		if lazy && m.leaveOut(i) {
			s.stopped = s.stopped || c == cpus.Stop
			continue
		}
		p.left++
		at += nanos(costs.Send)
		there := at + nanos(costs.Delivery) + extra
		if costs.Jitter > 0 {
			there += m.stay(costs.Jitter)
		}
		if s.cpu.Role == cpus.Idle && s.cpu.Phase == cpus.Asleep {
			there += nanos(costs.IdleWake)
		}
		if m.code.Maskable(c) {
			there += m.masks(s, there)
		}
		m.ask(there, evArrive, i)
		p.reached = max(p.reached, there)
	}
	p.busy = at
	m.ledger.sent.Rounds[p.home][c]++
	m.ledger.sent.Sent[c] += uint64(p.left)
	m.rounds++
	p.round = m.rounds
	if t := m.listener; t != nil {
		t.Round(p.round, p.home, c, p.left, int64(m.now))
	}
}

// quiesce asks every CPU, and with cpus.Quiesce every preempted task, to say when it
// is in no trampoline. That interrupts no CPU, and always takes its time. A CPU that
// is known to be in user space is asked only if user says so: RCU does not wait for it
// (context tracking, kernel/context_tracking.c).
func (m *Machine) quiesce(c cpus.Cause, user bool) {
	p := &m.patch
	p.sent, p.left = c, 0
	p.busy = m.now + nanos(m.costs.GracePeriod)
	m.ledger.pause(m.now)
	for i := range m.cpus {
		s := &m.cpus[i]
		inUser := s.cpu.Role == cpus.Isolated && s.cpu.Phase == cpus.Asleep
		if i != p.home && s.online && (user || !inUser) {
			p.left++
			m.ask(m.now, evArrive, i)
		}
		if c == cpus.Quiesce && s.task.There() && !s.task.Quiet {
			s.task.Quiet = true
			p.left++
		}
	}
}

// Answered implements poke.Ground.
func (m *Machine) Answered() bool { return m.patch.left == 0 && m.now >= m.patch.busy }

// StopMachine implements poke.Ground.
func (m *Machine) StopMachine(lazy bool) bool {
	p := &m.patch
	p.stopped, p.arrived = true, 0
	m.interrupt(cpus.Stop, lazy, nanos(m.costs.StopWake))
	p.asked = p.left
	return true
}

// Stopped implements poke.Ground.
func (m *Machine) Stopped() bool { return m.Answered() && m.patch.arrived == m.patch.asked }

// ResumeMachine implements poke.Ground: it stores the flag on which the CPUs spin.
func (m *Machine) ResumeMachine() {
	p := &m.patch
	for i := range m.cpus {
		s := &m.cpus[i]
		if s.stopped && !s.active {
			s.active = true
			m.ask(m.now+nanos(m.costs.Answer), evCPU, i)
		}
		s.stopped = false
	}
	p.stopped, p.arrived, p.asked = false, 0, 0
}

// SyncSelf implements poke.Ground.
func (m *Machine) SyncSelf() { m.cpus[m.patch.home].cpu.Synced = m.text.seq() }
