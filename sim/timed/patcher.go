// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// patcher executes plans. It has the requests that it has sent to CPUs.
type patcher struct {
	poke.Patcher
	ctx     context.Context
	home    int // the CPU that it sits on
	cause   cpus.Cause
	err     error
	running bool

	round   uint64     // number of the last round
	sent    cpus.Cause // of it
	left    int        // answers to it that are missing
	arrived int        // CPUs that stand still
	asked   int        // to do so
	stopped bool

	awaits  waitFor
	next    Nanos // its next event, where it awaits nothing
	reached Nanos // when the last round, or the one under way, gets to the last of its targets
	busy    Nanos // until then it sends, or has to wait anyway
	resched Nanos // when it last gave way to other tasks
	grace   Nanos // time spent in grace periods
	began   Nanos // of the current grace period
	stepped Nanos // when the step before the current one was over
}

// waitFor is what the patcher waits for.
type waitFor uint8

const (
	forNothing waitFor = iota
	forAnswers
	forHandlers
)

// Part is one update of several that follow each other, with the cause under which its
// rounds are counted: cpus.Sync for records.
type Part struct {
	*poke.Update
	Cause cpus.Cause
	Frees uint64 // the ops that is released when it is over, 0 for none
}

// Outcome has the times and counts of updates.
type Outcome struct {
	Update   Nanos // from the first step until the last, without grace periods
	Grace    Nanos // grace periods
	Exposure Nanos // mean time that a site held a breakpoint, over all patches of records
	Events   uint64
	Counts   cpus.Counts
	Tallies  []cpus.Tally
	Compared uint64  // comparisons of all lookups
	Stolen   []Nanos // by CPU: in interrupts, traps and catching up
	LeftOut  uint64  // targets that lazy rounds left out, in user space
	CaughtUp uint64  // times that a CPU made up for that, since the update before this one was over
	Quiet    []Nanos // by CPU: the longest time without an interrupt, grace periods apart
}

// Update executes updates one after the other, and lets the CPUs go on until none of
// them can meet anything of the last one any more. Where one does not get through the
// machine is useless afterwards.
func (m *Machine) Update(ctx context.Context, parts ...Part) (out Outcome, err error) {
	events, records := m.events, 0
	m.open()
	for _, part := range parts {
		start, exposed := m.now, m.expose.until(m.now)
		if err := m.carryOut(ctx, part); err != nil {
			return Outcome{}, fmt.Errorf("timed update: %w", err)
		}
		out.Update += m.now - start - m.patch.grace
		out.Grace += m.patch.grace
		if part.Cause == cpus.Sync {
			out.Exposure += m.expose.until(m.now) - exposed
			records += len(part.Patches)
		}
		// Stores that no fence has pushed out arrive at last.
		if err := m.happenUntil(ctx, func() bool { return m.patch.Waiting() == 0 }); err != nil {
			return Outcome{}, fmt.Errorf("timed update: %w", err)
		}
	}
	m.ledger.pause(m.now)
	if records > 0 {
		out.Exposure /= Nanos(records)
	}
	if err := m.Pass(ctx, m.now+m.lag+1); err != nil {
		return Outcome{}, fmt.Errorf("timed update: %w", err)
	}
	m.calls.close(m.now) // or there would always be a task that is away, on a machine that is large enough
	if err := m.happenUntil(ctx, m.quiet); err != nil {
		return Outcome{}, fmt.Errorf("timed update: %w", err)
	}
	m.close(&out)
	out.Events = m.events - events
	return out, nil
}

// carryOut executes one part.
func (m *Machine) carryOut(ctx context.Context, part Part) error {
	home := cpus.Housekeeper(m.cfg.Roles)
	m.patch = patcher{
		Patcher: poke.Patcher{Code: m.code, Patches: part.Patches, Plan: part.Plan},
		ctx:     ctx, home: home, cause: part.Cause, running: true, resched: m.now, stepped: m.now,
	}
	m.sit(home)
	m.resume(m.now)
	if err := m.happenUntil(ctx, func() bool { return !m.patch.running }); err != nil {
		return err
	}
	m.stand()
	p := &m.patch
	switch {
	case p.err != nil:
		return p.err
	case p.running:
		m.Report(cpus.Violation{Property: cpus.Deadlock, CPU: p.home, Site: -1,
			Why: fmt.Sprintf("the patcher waits at %s, and no CPU will ever make a step", p.Plan[p.At])})
		return fmt.Errorf("no CPU can move: the patcher waits at %s", p.Plan[p.At])
	}
	if part.Frees != 0 {
		m.SetOps(part.Frees, cpus.CalledFreed)
	}
	part.Promise(m)
	return nil
}

// open opens the books.
func (m *Machine) open() {
	m.text.forget()
	m.compared = 0
	m.ledger.open(len(m.cpus), m.now)
	for i := range m.cpus { // the time that was taken from them is counted anew
		s := &m.cpus[i]
		m.ledger.life[i].Stolen += s.stolen
		s.tally, s.stolen = cpus.Tally{}, 0
	}
	m.calls.open(m.now)
	m.drawCall(float64(m.now), m.drawn())
}

// quiet tells whether no CPU is in the middle of anything.
func (m *Machine) quiet() bool {
	if m.parked > 0 {
		return false
	}
	for i := range m.cpus {
		if m.cpus[i].active {
			return false
		}
	}
	return true
}

// close reads the books.
func (m *Machine) close(out *Outcome) {
	out.Counts, out.Quiet = m.ledger.counts()
	out.Compared = m.compared
	for i := range m.cpus {
		s := &m.cpus[i]
		out.Tallies = append(out.Tallies, s.tally)
		out.Stolen = append(out.Stolen, s.stolen)
	}
	leftOut, caughtUp := m.lives()
	out.LeftOut, out.CaughtUp = leftOut-m.told.leftOut, caughtUp-m.told.caughtUp
	m.told.leftOut, m.told.caughtUp = leftOut, caughtUp
	if m.cfg.Calls == HotOnly && len(m.calls.busy) > 0 {
		traced, untraced := m.calls.cold(m.cold)
		t := &out.Tallies[m.calls.busy[0]] // the CPU of each is not known, and only their sum is used
		t[cpus.Traced] += traced
		t[cpus.Untraced] += untraced
		t[cpus.Begun] += traced + untraced
	}
}

// sit takes a CPU over: its own task waits between two calls. Where it is not
// between two calls now, the patcher begins all the same: it was there first.
func (m *Machine) sit(cpu int) {
	s := &m.cpus[cpu]
	m.patch.home = cpu
	s.leased = true
	m.free(s, false)
}

// stand gives it back.
func (m *Machine) stand() {
	s := &m.cpus[m.patch.home]
	s.leased = false
	m.free(s, s.callsItself() && !s.active)
	m.vacate(m.patch.home)
}

// goOn lets the patcher make steps until it waits, or until what it does takes time
// that others need too.
func (m *Machine) goOn() {
	p := &m.patch
	for p.running {
		p.awaits = forNothing
		at, done := p.At, p.Done
		if at == len(p.Plan) {
			p.running = false
			return
		}
		st := p.Plan[at]
		status, err := p.Step(p.ctx, m, &m.stores)
		if err != nil {
			p.err, p.running = err, false
			return
		}
		m.stores.draw()
		if status == poke.Waits {
			m.await(st)
			return
		}
		cost := m.patchCost(st, at, done)
		if p.At != at {
			m.sawStep(p.home, st, m.now+cost)
			cost += m.between()
		}
		if cost == 0 {
			continue
		}
		next := m.now + cost
		if !m.alone(next) {
			m.resume(next)
			return
		}
		m.now = next
		m.events++
	}
}

// patchCost is what a step of the patcher takes that was at a place of its plan.
func (m *Machine) patchCost(st poke.Step, at int, done int32) Nanos {
	c, p := m.costs, &m.patch
	moved := p.At != at || p.Done != done
	switch {
	case !moved:
		return 0
	case st.Op == poke.Verify && st.To > st.From:
		return nanos(c.Verify)
	case st.Op == poke.Write && (st.Part == poke.Literal || st.Part == poke.LiteralLow || st.Part == poke.LiteralHigh):
		return nanos(c.StoreLiteral)
	case st.Op == poke.Write:
		return nanos(c.Store)
	case st.Op == poke.Publish:
		return nanos(c.Publish * float64(st.To-st.From))
	case st.Op == poke.Fence || st.Op == poke.Sync:
		return nanos(c.Fence)
	case st.Op == poke.Unpublish:
		return nanos(c.Reference)
	case st.Op == poke.GracePeriod || st.Op == poke.SynchronizeRCU:
		p.grace += m.now - p.began
		m.ledger.goOn(m.now)
	}
	return 0
}

// between is what happens to the patcher between two steps: it may go on on another
// CPU, and gives way to other tasks now and then.
func (m *Machine) between() (cost Nanos) {
	p := &m.patch
	if p.stopped || p.At == len(p.Plan) {
		return 0
	}
	if m.cfg.Migrate && m.jitter.IntN(64) == 0 {
		if to := m.jitter.IntN(len(m.cpus)); m.houses(to) {
			m.stand()
			m.sit(to)
			cost += nanos(m.costs.Migration)
		}
	}
	if m.cfg.Preempt && p.Plan[p.At].Op == poke.Publish { // cond_resched
		share := float64(m.now-p.resched) / m.costs.TickInterval
		if p.resched = m.now; m.jitter.Float64() < share {
			cost += nanos(m.costs.Switch) + m.stay(m.costs.Away)
		}
	}
	return cost
}

// houses tells whether the patcher can go on on a CPU.
func (m *Machine) houses(cpu int) bool {
	s := &m.cpus[cpu]
	return cpu != m.patch.home && s.cpu.Role.RunsPatcher() && s.online && !s.active
}

// await leaves the patcher waiting for answers, or for handlers.
func (m *Machine) await(st poke.Step) {
	p := &m.patch
	switch p.awaits = forAnswers; st.Op {
	case poke.WaitHandlers:
		p.awaits = forHandlers
		if m.Drained() {
			m.resume(m.now)
		}
	default:
		m.answered()
		m.vacate(p.home)
		m.stretch.watch(len(m.calls.batch.sites))
	}
}

// answered wakes the patcher if its request is done.
func (m *Machine) answered() {
	p := &m.patch
	if p.awaits == forAnswers && p.left == 0 && p.arrived == p.asked {
		m.resume(max(m.now+nanos(m.costs.Answer), p.busy))
	}
}

// resume lets the patcher go on at a time.
func (m *Machine) resume(at Nanos) {
	m.patch.awaits, m.patch.next = forNothing, at
	m.ask(at, evPatcher, 0)
}

// stores decides which of the patcher's stores wait in its CPU's store buffer, and when
// those that nothing pushes out become visible. poke.Patcher has the buffer itself, and
// what pushes stores out: a fence, a grace period, a younger store to the same place, too
// many of them.
//
// Only a store that some later step of the plan can overtake is asked about. Where a fence
// comes next, the other CPUs cannot tell a store that waits from one that they do not fetch
// yet, and how long that takes is Costs.FetchLag: there is nothing to draw.
//
// No architecture bounds how long a store waits where no fence follows ("in finite time", Arm ARM,
// B2.3; "eventually", RISC-V, RVWMO's progress axiom), and no calibration measures it. The kernel's
// work in a tick of the timer pushes the store out, and the CPU's work between two ticks may: each
// store waits for a time without memory, Costs.TickInterval on average.
type stores struct {
	m       *Machine
	rng     *rand.Rand
	waiting int   // stores that wait, as they were when the next one was drawn
	pending int32 // number of the event that lets one of them go, 0 for none
}

// Choose implements cpus.Chooser for the patcher.
func (s *stores) Choose(what cpus.Choice, n int) int {
	if what != cpus.ChooseDrain || s.pushedOut() {
		return n - 1
	}
	return s.rng.IntN(n)
}

// pushedOut tells whether the step after the current one makes all stores visible
// before it does anything else.
func (s *stores) pushedOut() bool {
	p := &s.m.patch
	if p.At+1 == len(p.Plan) {
		return false
	}
	switch p.Plan[p.At+1].Op {
	case poke.Fence, poke.GracePeriod, poke.SynchronizeRCU, poke.Unlock:
		return true
	}
	return false
}

// draw draws when the next of the stores that wait goes, if their number has changed:
// times without memory can be drawn anew, and the first of k comes k times as fast.
func (s *stores) draw() {
	m, n := s.m, s.m.patch.Waiting()
	if n == s.waiting {
		return
	}
	if s.waiting, s.pending = n, 0; n > 0 {
		s.pending = m.ask(m.now+nanos(s.rng.ExpFloat64()*m.costs.TickInterval/float64(n)), evPatcher, storeGoes)
	}
}

// Whom an evPatcher is about where it is not the patcher itself: a store that leaves its buffer, a stretch that ends.
const (
	storeGoes = iota + 1
	stretchEnds
)

// goes lets any of the stores that wait become visible, if nothing has changed since that
// was drawn; an older one to the same place goes first.
func (s *stores) goes(number int32) {
	if number != s.pending {
		return
	}
	p := &s.m.patch
	for i := s.rng.IntN(p.Waiting()); !p.Drain(i, s.m); i-- {
	}
	s.draw()
}
