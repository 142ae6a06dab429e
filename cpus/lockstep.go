// SPDX-License-Identifier: Apache-2.0

package cpus

// Lockstep makes the steps of a machine's CPUs one by one: a schedule says which is next.
// The machine may be that of any engine, which tells where it keeps its CPUs.
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

	under []CPU // by CPU: what an NMI has interrupted
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
		if !t.Owes {
			t.Quiesce, t.Owes = l.Unask(cpu)
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

// remove takes the first request of a cause out of a box. Only in a Lockstep:
// nobody pushes meanwhile.
func (b *box) remove(kind int, cause Cause) *request {
	var found *request
	k := &b.kinds[kind]
	first := b.pop(kind) // moves all that waits into the queue
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
		if t := &s.m.parked[cpu]; t.There() && !t.Owes {
			t.Owes, t.Quiesce = true, s.requests[cpu].tick
			n++
		}
	}
	return n
}
