// SPDX-License-Identifier: Apache-2.0

package cpus

import "sync"

// Lockstep makes the steps of a machine's CPUs one by one: a schedule says which is next.
// The machine may be any engine's; the engine says where it keeps its CPUs.
type Lockstep struct {
	Code   *Code
	On     Shared
	Report func(Violation)
	CPUs   []*CPU
	Tasks  []*Task // by CPU: the one that was preempted there
	// Unask takes the request of a grace period out of a CPU's box, if there is one, and
	// tells which it was.
	Unask func(cpu int) (which Ticket, waited bool)
	// Moved, where set, is told which CPU's state may have changed.
	Moved func(cpu int)

	under []CPU // by CPU: the state that an NMI has interrupted
	pad   *Scratchpad
}

// NewLockstep completes a Lockstep.
func NewLockstep(l Lockstep) *Lockstep {
	l.under, l.pad = make([]CPU, len(l.CPUs)), NewScratchpad()
	if l.Moved == nil {
		l.Moved = func(int) {}
	}
	return &l
}

// Step lets a CPU make one step.
func (l *Lockstep) Step(cpu int, ch Chooser) Event {
	defer l.Moved(cpu)
	l.pad.Forget()
	c := l.CPUs[cpu]
	event := Step(c, l.Code, l.On, ch, l.pad)
	if l.pad.Found {
		l.Report(l.pad.Violation)
	}
	if c.Over(l.Code) {
		c.Return(l.under[cpu])
	}
	return event
}

// CPU is what a CPU is about.
func (l *Lockstep) CPU(cpu int) CPU { return *l.CPUs[cpu] }

// Change changes what only the CPU itself knows: see CPU.SkipPoll and CPU.Repoll.
func (l *Lockstep) Change(cpu int, f func(c *CPU)) {
	defer l.Moved(cpu)
	f(l.CPUs[cpu])
}

// Tick is CPU.Tick.
func (l *Lockstep) Tick(cpu int) { l.Change(cpu, func(c *CPU) { c.Tick(l.Code, l.On) }) }

// NMI lets a non-maskable interrupt come, whatever the CPU is in the middle of. It goes
// back by itself.
func (l *Lockstep) NMI(cpu int) { l.Change(cpu, func(c *CPU) { l.under[cpu] = c.NMI() }) }

// Park preempts a CPU's task. A grace period that had not asked the CPU yet asks
// the task.
func (l *Lockstep) Park(cpu int) {
	l.Change(cpu, func(c *CPU) {
		t := c.Park(l.Code, l.On)
		if !t.Quiet {
			t.Quiesce, t.Quiet = l.Unask(cpu)
		}
		*l.Tasks[cpu] = t
	})
}

// Unpark lets a CPU go on with the task that was preempted on another one, or on
// itself.
func (l *Lockstep) Unpark(cpu, from int) {
	l.Change(cpu, func(c *CPU) {
		c.Unpark(*l.Tasks[from])
		*l.Tasks[from] = Task{}
	})
}

// Lockstep is the machine's, in place of Start.
func (m *Machine) Lockstep() *Lockstep {
	l := Lockstep{Code: m.code, On: m, Report: m.Report}
	for i, r := range m.runners {
		l.CPUs, l.Tasks = append(l.CPUs, &r.cpu), append(l.Tasks, &m.parked[i])
	}
	l.Moved = func(cpu int) { m.runners[cpu].noteSynced() }
	l.Unask = func(cpu int) (Ticket, bool) {
		q := m.boxes[cpu].remove(maskable, Quiesce)
		if q == nil {
			return 0, false
		}
		return q.tick, true
	}
	return NewLockstep(l)
}

// Lease takes a CPU over in a Lockstep, whatever it is in the middle of. Its interrupts are
// answered by Lockstep.Step.
func (m *Machine) Lease(cpu int) *Lease { return &Lease{m.runners[cpu]} }

// remove takes the first request of a cause out of a box. It is only for a Lockstep, in
// which no sender pushes meanwhile.
func (b *box) remove(kind int, cause Cause) *request {
	var found *request
	k := &b.kinds[kind]
	first := b.pop(kind) // moves all waiting requests into the queue
	if first == nil {
		return nil
	}
	first.next, k.queue = k.queue, first
	for at := &k.queue; *at != nil; at = &(*at).next {
		if r := *at; r.cause == cause {
			*at, found = r.next, r
			break
		}
	}
	return found
}

// askParked lets a grace period wait for preempted tasks too, and tells how many
// there are.
func (s *Sender) askParked() (n int) {
	for cpu := range s.m.parked {
		if t := &s.m.parked[cpu]; t.There() && !t.Quiet {
			t.Quiet, t.Quiesce = true, s.requests[cpu].tick
			n++
		}
	}
	return n
}

// Trail is what a live machine has done, one step after the other. A step that is
// recorded is made under a lock, so that their order is that of their accesses;
// which CPU makes the next one is for the goroutines to find out.
type Trail struct {
	Max int // steps that are recorded

	mu    sync.Mutex
	steps []TrailStep
}

// TrailStep is one step of somebody.
type TrailStep struct {
	Kind    byte // 'c': a CPU's step, 't': its timer, 'n': an NMI; anything else is a patcher's
	Who     int
	Answers []int // to the questions that had more than one
	Event   Event // of a CPU's step
	CPU     CPU   // what that left of the CPU
}

// Steps are the recorded steps. The recording must be over.
func (t *Trail) Steps() []TrailStep { return t.steps }

// Do makes a step and records it; it hands over a Chooser that takes notes. A full
// trail records nothing, but the order of steps remains one.
func (t *Trail) Do(kind byte, who int, ch Chooser, step func(ch Chooser) (Event, CPU)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := notes{ch: ch}
	event, cpu := step(&n)
	if len(t.steps) < t.Max {
		t.steps = append(t.steps, TrailStep{kind, who, n.answers, event, cpu})
	}
}

func (t *Trail) step(r *runner) {
	t.Do('c', r.id, r.chooser, func(ch Chooser) (Event, CPU) {
		event := Step(&r.cpu, r.m.code, r.m, ch, r.pad)
		r.tally[event]++
		return event, r.cpu
	})
}

func (r *runner) tick() {
	if r.trail == nil {
		r.cpu.Tick(r.m.code, r.m)
		return
	}
	r.trail.Do('t', r.id, r.chooser, func(Chooser) (Event, CPU) {
		r.cpu.Tick(r.m.code, r.m)
		return Nothing, r.cpu
	})
}

// nmi lets a non-maskable interrupt come.
func (r *runner) nmi() {
	if r.trail == nil {
		r.under = r.cpu.NMI()
		return
	}
	r.trail.Do('n', r.id, r.chooser, func(Chooser) (Event, CPU) {
		r.under = r.cpu.NMI()
		return Nothing, r.cpu
	})
}

// notes is a Chooser that remembers its answers. To linger is not to be scheduled
// for a while: that is in the order of the steps already.
type notes struct {
	ch      Chooser
	answers []int
}

// Choose implements Chooser.
func (n *notes) Choose(what Choice, of int) int {
	if of <= 1 || what == ChooseLinger {
		return 0
	}
	a := n.ch.Choose(what, of)
	if what == ChooseDrain { // it only matters whether the answer is 0
		a = min(a, 1)
	}
	n.answers = append(n.answers, a)
	return a
}
