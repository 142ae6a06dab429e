// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"

	"github.com/textpoke/textpoke/cpus"
)

// Isolated CPUs run in user space and enter the kernel now and then: Costs.Entries
// times a second, for Costs.KernelStretch on average, both memoryless. Where rounds
// reach them anyway it makes no difference where they are. Where rounds leave out
// those in user space, only two things matter: where a CPU is when a round is sent,
// which is drawn then and there, and when one that was left out comes in next.

// leaveOut tells whether a lazy round leaves a CPU out; it then owes a
// synchronisation, and an event will take it into the kernel.
func (m *Machine) leaveOut(i int) bool {
	s := &m.cpus[i]
	if s.space&cpus.InUser == 0 {
		return false
	}
	if s.space == cpus.InUser && m.jitter.Float64() < m.inKernel(m.now-s.outside) {
		m.comeIn(i) // it was in the kernel already
		return false
	}
	var out bool
	if s.space, out = s.space.LeaveOut(); !out {
		return false
	}
	m.ledger.life[i].leftOut()
	if rate := m.costs.Entries; !s.entry && rate > 0 {
		s.entry = true
		m.ask(m.now+m.stay(1e9/rate), evEnter, i)
	}
	return true
}

// inKernel is the probability that an isolated CPU is in the kernel so long after it
// was seen to leave it: that of two states with exponential stays (Kolmogorov's forward
// equations), which tends to the share of its time that it is there, stays/(1+stays)
// with stays = Entries x KernelStretch.
func (m *Machine) inKernel(after Nanos) float64 {
	in, stretch := m.costs.Entries/1e9, m.costs.KernelStretch
	if in <= 0 || stretch <= 0 {
		return 0
	}
	return in * stretch / (1 + in*stretch) * -math.Expm1(-(in+1/stretch)*float64(after))
}

// enter takes a CPU into the kernel, unless an interrupt has done so before.
func (m *Machine) enter(i int) {
	s := &m.cpus[i]
	s.entry = false
	if s.active || s.cpu.Phase != cpus.Asleep || !s.space.Owes() {
		return
	}
	m.comeIn(i)
	m.wake(i)
}

// comeIn begins a stay in the kernel.
func (m *Machine) comeIn(i int) {
	s := &m.cpus[i]
	m.steps.enter = true
	s.cpu.SkipPoll()
	m.step(i, s) // asleep: comes in
	m.steps.enter = false
	if s.space == cpus.InUser { // has been there for a while
		m.step(i, s)
	}
	s.stay = m.now + m.stay(m.costs.KernelStretch)
	m.ask(s.stay, evLeave, i)
}

// preempt takes a CPU's task off in the middle of a call.
func (m *Machine) preempt(i int, s *cpuState) {
	s.park = false
	s.task = s.cpu.Park(m.code, m)
	m.parked++
	m.ask(m.now+nanos(m.costs.Switch)+m.stay(m.costs.Away), evUnpark, i)
}

// unpark lets a preempted task go on, or wait for its CPU.
func (m *Machine) unpark(i int) {
	s := &m.cpus[i]
	if s.due = !m.vacant(s); s.due {
		return
	}
	s.cpu.Unpark(s.task)
	s.task = cpus.Task{}
	m.parked--
	m.run(i, true)
}

// vacant tells whether a preempted task can have its CPU: no task runs there, and the patcher does
// not sit on it, unless that sleeps until a grace period is over.
func (m *Machine) vacant(s *cpuState) bool {
	p := &m.patch
	sleeps := p.awaits == forAnswers && int(p.sent) >= cpus.NumCauses
	return !s.active && (!s.leased || sleeps) && s.cpu.CanUnpark()
}

// vacate gives a CPU to the preempted task that waits for it, if there is one.
func (m *Machine) vacate(i int) {
	if s := &m.cpus[i]; s.due && m.vacant(s) {
		s.due = false
		m.ask(m.now, evUnpark, i)
	}
}
