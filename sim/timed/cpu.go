// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// cpuState is one CPU as the machine sees it. Fields that traps and interrupts change come first,
// in three cache lines: 4,096 CPUs are to fit into a core's own cache.
type cpuState struct {
	cpu    cpus.CPU
	box    cpus.Cause // of the interrupt that has arrived
	boxed  bool       // whether one has; a patcher sends the next when all have answered
	online bool
	active bool // its present work ends with an event
	leased bool // a patcher sits on it: its own task makes no calls
	park   bool // its call will be preempted inside the tracer
	due    bool // the task that was waits for the CPU
	stolen Nanos
	owes   Nanos // time of steps that it has made already; the next step takes it as well
	tally  cpus.Tally

	task    cpus.Task // that was preempted
	stopped bool
	space   cpus.Space
	entry   bool  // an event will take it into the kernel
	stay    Nanos // it stays in the kernel until then
	outside Nanos // when it last was seen to leave the kernel

	// Whether a CPU that masks its interrupts now and then did so at a time.
	masked   bool
	maskedAt Nanos

	watched
	line visitor

	_ [8]byte // to whole cache lines
}

func newCPU(i int, role cpus.Role) cpuState {
	s := cpuState{cpu: cpus.CPU{ID: int16(i), Role: role, Synced: 1}, online: role != cpus.Offline}
	if role == cpus.Idle || role == cpus.Isolated {
		s.cpu.Phase = cpus.Asleep
	}
	if role == cpus.Isolated {
		s.space, s.outside = cpus.InUser, -math.MaxInt64/2 // long ago
	}
	return s
}

// callsItself tells whether the CPU calls functions without being interrupted.
func (s *cpuState) callsItself() bool {
	return s.online && (s.cpu.Role == cpus.Busy || s.cpu.Role == cpus.IrqsOff)
}

// rests tells whether the CPU needs no time until an event comes to it.
func (m *Machine) rests(s *cpuState) bool {
	c := &s.cpu
	switch {
	case c.Phase == cpus.Stopped:
		return s.stopped && !m.Pending(int(c.ID), true)
	case !c.BetweenCalls() || c.Owes() || s.boxed:
		return false
	case s.leased || s.callsItself() || c.Phase == cpus.Asleep:
		return true
	}
	return m.now < s.stay // an idle or isolated CPU in the kernel
}

// wake lets a CPU see what has happened to it, unless it is busy: then it will.
func (m *Machine) wake(i int) {
	if !m.cpus[i].active {
		m.run(i, false)
	}
}

// run steps a CPU until it rests, or until what it does takes time that others
// need too. now: the first step has been decided on, whatever state it rests in.
func (m *Machine) run(i int, now bool) {
	s := &m.cpus[i]
	for ; now || !m.rests(s); now = false {
		if s.park && s.cpu.Phase == cpus.Calling {
			m.preempt(i, s)
			continue
		}
		if s.cpu.BetweenCalls() && (s.boxed || s.cpu.Owes()) {
			s.cpu.Repoll()
		}
		if m.contends(s) {
			m.join(i, s)
			return
		}
		cost := m.step(i, s)
		if cost == 0 {
			continue
		}
		next := m.now + cost
		m.free(s, false)
		if m.alone(next) {
			m.now = next
			m.events++
			continue
		}
		s.active = true
		m.ask(m.handle(i, s, next, now && m.steps.site != anySite), evCPU, i)
		return
	}
	s.park = false
	m.free(s, s.callsItself() && !s.leased && s.cpu.Phase != cpus.Stopped)
	m.vacate(i)
}

// free says whether a CPU has time for calls from now on; one that is active has none.
func (m *Machine) free(s *cpuState, free bool) {
	c := m.calls
	if idle := &c.idle[s.cpu.ID]; *idle == free {
		c.passed(m.now)
		if *idle = !free; free {
			m.stretch.since[s.cpu.ID] = m.now
			c.available++
		} else {
			c.available--
		}
	}
}

// step makes one step of a CPU and says what it takes.
func (m *Machine) step(i int, s *cpuState) Nanos {
	if m.padOf != i {
		m.pad.Forget()
		m.padOf = i
	}
	before, begun := s.cpu.Phase, m.pad.Begun()
	_, at := s.cpu.OnWay()
	event := cpus.Step(&s.cpu, m.code, m, &m.steps, m.pad)
	if event != cpus.Nothing {
		s.tally[event]++
	}
	if n := m.pad.Begun() - begun; n > 0 {
		s.tally[cpus.Begun] += n
	}
	if m.pad.Found {
		m.Report(m.pad.Violation)
	}
	cost, stolen := m.cost(s, before, event)
	if before == cpus.Crossing {
		cost, stolen = m.crossing(at)
	}
	if stolen {
		s.stolen += cost
	}
	m.saw(i, s, before, event, cost)
	return cost
}

// cost is what a step takes, and whether the patcher has stolen that time.
func (m *Machine) cost(s *cpuState, before cpus.Phase, event cpus.Event) (Nanos, bool) {
	c := m.costs
	switch before {
	case cpus.Boundary, cpus.Again, cpus.Inside:
		if event == cpus.Trap {
			return nanos(c.TrapEntry), true
		}
	case cpus.Trapped, cpus.Leaving:
		s.line.granted = false // to wait for the line of a common count is over by now
		if m.cfg.Refs == int3.PerCPU {
			s.owes += nanos(c.Reference) // the moment makes no difference: it takes no event of its own
		}
		return 0, true
	case cpus.Searching:
		m.compared += uint64(m.comparisons)
		return s.owed(nanos(c.Comparison * float64(m.comparisons))), true
	case cpus.Returning, cpus.Missed:
		return s.owed(nanos(c.TrapExit)), true
	case cpus.Interrupted:
		if s.cpu.Phase == cpus.Syncing || s.cpu.Phase == cpus.Answering {
			return nanos(c.Handler), true
		}
	}
	return 0, false
}

// crossing is what a step on the way into the kernel takes: "enter", then "catch up".
func (m *Machine) crossing(at int) (Nanos, bool) {
	if at == 0 {
		return nanos(m.costs.UserEntry + m.costs.DeferralEntry), false
	}
	return nanos(m.costs.CatchUp), true
}

// owed is a cost with those that were put off until it.
func (s *cpuState) owed(cost Nanos) Nanos {
	cost += s.owes
	s.owes = 0
	return cost
}

// masks tells how much longer a CPU masks its interrupts at a time; stretches with
// and without masks are exponential and follow each other, so the state depends only on
// the one when it was last drawn.
func (m *Machine) masks(s *cpuState, at Nanos) Nanos {
	mean := m.costs.MaskedStretch
	if s.cpu.Role != cpus.IrqsOff || mean <= 0 {
		return 0
	}
	same := (1 + math.Exp(-2*float64(at-s.maskedAt)/mean)) / 2
	if s.masked = (m.jitter.Float64() < same) == s.masked; !s.masked {
		s.maskedAt = at
		return 0
	}
	left := m.stay(mean)
	s.masked, s.maskedAt = false, at+left
	return left
}

// stay draws a time of a given mean.
func (m *Machine) stay(mean float64) Nanos { return nanos(m.jitter.ExpFloat64() * mean) }

// call is a call that was drawn, if nothing has changed since.
func (m *Machine) call(number int32) {
	if number != m.calls.pending {
		return
	}
	for {
		m.calls.cool(m.now, m.now-m.lag-1)
		cpu, site, park, ok := m.draw()
		at, more := m.calls.after(m.calls.next, m.drawn())
		// Where handlers queue for a line, most calls are of CPUs that have no time for them.
		if !ok && more && m.line.moving && m.alone(at) {
			m.now = at
			m.events++
			continue
		}
		m.askCall(at, more) // first: this call may take time
		if ok {
			m.execute(int(cpu), site, park)
			m.met()
		}
		return
	}
}

// draw draws a call as the thinning says; ok tells whether it happens: not where its CPU
// has no time for it.
func (m *Machine) draw() (cpu, site int32, park, ok bool) {
	c := m.calls
	cpu = c.busy[c.rng.IntN(len(c.busy))]
	ready := !c.idle[cpu]
	switch {
	case m.cfg.Calls != HotOnly:
		site, park, ok = c.anySite(), c.parked(), true
	case !ready && c.parks == 0:
		c.rng.Float64() // what draw begins with: all else would tell which site it is not
	default:
		if site, park, ok = c.draw(); ok && ready {
			m.settle(int(cpu))
			ready = !c.idle[cpu]
		}
	}
	return cpu, site, park, ok && ready
}

// execute lets a CPU that rests between two calls make one.
func (m *Machine) execute(i int, site int32, park bool) {
	s := &m.cpus[i]
	if m.cfg.Calls == EverySkip && !park && !m.calls.heat[site].hot() {
		s.tally[cpus.Begun]++
		s.tally[m.coldEvent(site)]++
		return
	}
	if !park && m.repeat(i, s, site) {
		return
	}
	s.cpu.SkipPoll()
	s.park = park && !s.task.There()
	m.steps.site = site
	m.run(i, true)
	m.steps.site = anySite
}

// coldEvent is how a call of a cold site ends.
func (m *Machine) coldEvent(site int32) cpus.Event {
	if m.calls.heat[site].enabled {
		return cpus.Traced
	}
	return cpus.Untraced
}

// drawn is the weight of the calls that are drawn.
func (m *Machine) drawn() float64 {
	if m.cfg.Calls == HotOnly {
		return m.calls.together.total() + m.calls.recentWeight() + m.calls.parks
	}
	return 1
}

// drawCall draws the next call after a time.
func (m *Machine) drawCall(after, bound float64) {
	m.askCall(m.calls.after(after, bound))
}

// askCall asks for the call that was drawn, if there is one.
func (m *Machine) askCall(at Nanos, any bool) {
	m.calls.pending = 0
	if any {
		m.calls.pending = m.ask(at, evCall, 0)
	}
}

// hotter draws the next call anew when more may be events than it was drawn for.
func (m *Machine) hotter() {
	const room = 1.5 // not for every single store
	if w := m.drawn(); w > m.calls.bound {
		m.drawCall(float64(m.now), w*room)
	}
}
