// SPDX-License-Identifier: Apache-2.0

package cpus

// Lockstep runs a machine's CPUs one step at a time: each has its goroutine, which
// waits to be told. What the machine does is then for a schedule to say.
type Lockstep struct {
	m      *Machine
	orders []chan func(r *runner)
	done   chan struct{}
}

// StartLockstep starts every CPU's goroutine, in place of Start.
func (m *Machine) StartLockstep() *Lockstep {
	l := &Lockstep{m: m, done: make(chan struct{})}
	for _, r := range m.runners {
		orders := make(chan func(r *runner))
		l.orders = append(l.orders, orders)
		m.wait.Go(func() {
			for order := range orders {
				order(r)
				r.noteSynced()
				l.done <- struct{}{}
			}
		})
	}
	return l
}

// Stop ends the goroutines.
func (l *Lockstep) Stop() {
	for _, orders := range l.orders {
		close(orders)
	}
	l.m.wait.Wait()
}

// do lets a CPU's goroutine do something, and waits for it.
func (l *Lockstep) do(cpu int, order func(r *runner)) {
	l.orders[cpu] <- order
	<-l.done
}

// Step lets a CPU make one step.
func (l *Lockstep) Step(cpu int, ch Chooser) (event Event) {
	l.do(cpu, func(r *runner) {
		event = Step(&r.cpu, l.m.code, l.m, ch, r.pad)
		if r.pad.Found {
			l.m.Report(r.pad.Violation)
		}
		if r.cpu.Over(l.m.code) {
			r.cpu.Return(r.under)
		}
	})
	return event
}

// CPU is what a CPU is about.
func (l *Lockstep) CPU(cpu int) (c CPU) {
	l.do(cpu, func(r *runner) { c = r.cpu })
	return c
}

// Change changes what only the CPU itself knows: see CPU.SkipPoll and CPU.Repoll.
func (l *Lockstep) Change(cpu int, f func(c *CPU)) {
	l.do(cpu, func(r *runner) { f(&r.cpu) })
}

// Tick is CPU.Tick.
func (l *Lockstep) Tick(cpu int) {
	l.do(cpu, func(r *runner) { r.cpu.Tick(l.m.code, l.m) })
}

// Lease takes a CPU over, whatever it is in the middle of. Its interrupts are
// answered by Step.
func (l *Lockstep) Lease(cpu int) *Lease { return &Lease{l.m.runners[cpu]} }

// Park preempts a CPU's task. A grace period that had not asked the CPU yet asks
// the task.
func (l *Lockstep) Park(cpu int) {
	l.do(cpu, func(r *runner) {
		t := r.cpu.Park(l.m.code, l.m)
		if q := l.m.boxes[cpu].remove(maskable, Quiesce); q != nil && !t.Owes {
			t.Owes, t.Quiesce = true, q.tick
		}
		l.m.parked[cpu] = t
	})
}

// Unpark lets a CPU go on with the task that was preempted on another one, or on
// itself.
func (l *Lockstep) Unpark(cpu, from int) {
	l.do(cpu, func(r *runner) {
		r.cpu.Unpark(l.m.parked[from])
		l.m.parked[from] = Task{}
	})
}

// remove takes the first request of a cause out of a box. Only in lockstep:
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

// NMI lets a non-maskable interrupt come, whatever the CPU is in the middle of. It goes
// back by itself.
func (l *Lockstep) NMI(cpu int) {
	l.do(cpu, func(r *runner) { r.under = r.cpu.NMI() })
}
