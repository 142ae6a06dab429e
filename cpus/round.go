// SPDX-License-Identifier: Apache-2.0

package cpus

import "sync/atomic"

// request is one interrupt on its way to one CPU: the node of a lock-free list,
// as the kernel's call_single_data (kernel/smp.c).
type request struct {
	next  *request
	cause Cause
	tick  Ticket
	sent  bool // its CPU is a target of the last round
}

// box is where a CPU's interrupts wait, in order of arrival. Anybody pushes,
// only the CPU takes.
type box struct {
	kinds [2]struct {
		head  atomic.Pointer[request] // newest first
		queue *request                // the CPU's own: oldest first
	}
}

// Interrupts that masking holds back, and those it does not.
const (
	maskable = iota
	unmaskable
)

func (b *box) push(kind int, r *request) {
	head := &b.kinds[kind].head
	for {
		r.next = head.Load()
		if head.CompareAndSwap(r.next, r) {
			return
		}
	}
}

func (b *box) pending(kind int) bool {
	k := &b.kinds[kind]
	return k.queue != nil || k.head.Load() != nil
}

func (b *box) pop(kind int) *request {
	k := &b.kinds[kind]
	if k.queue == nil {
		for r := k.head.Swap(nil); r != nil; { // reverse
			next := r.next
			r.next, k.queue = k.queue, r
			r = next
		}
	}
	r := k.queue
	if r != nil {
		k.queue = r.next
	}
	return r
}

// Maskable tells whether interrupts of a cause are held back by a CPU that masks them.
func (c *Code) Maskable(cause Cause) bool { return !cause.Syncs() || !c.Traits.MaskedRounds }

// Pending implements Shared.
func (m *Machine) Pending(cpu int, masked bool) bool {
	b := &m.boxes[cpu]
	return !masked && b.pending(maskable) || m.code.Traits.MaskedRounds && b.pending(unmaskable)
}

// Take implements Shared.
func (m *Machine) Take(cpu int, masked bool) (Taken, bool) {
	b := &m.boxes[cpu]
	r := b.pop(unmaskable)
	if r == nil && !masked {
		r = b.pop(maskable)
	}
	if r == nil {
		return Taken{}, false
	}
	if int(r.cause) < NumCauses {
		m.Ledger.take(cpu, r.cause)
	}
	return Taken{Ticket: r.tick, Cause: r.cause}, true
}

// Answer implements Shared.
func (m *Machine) Answer(t Ticket) {
	s := m.sender(t)
	if s.left.Add(-1) == 0 {
		select {
		case s.done <- struct{}{}:
		default: // an answer that no sender has waited for lies there still
		}
	}
}

// sender is whose request a ticket is.
func (m *Machine) sender(t Ticket) *Sender { return m.senders[int(t)/len(m.runners)] }

// Sender sends rounds, one at a time.
type Sender struct {
	m        *Machine
	requests []request // one for each CPU, reused by every round
	left     atomic.Int32
	done     chan struct{}
	round    uint64 // the last one's number, while somebody listens
	stopped  bool   // between StopMachine and ResumeMachine
	arriving int32  // CPUs that StopMachine asked
}

func newSender(m *Machine, id, cpus int) *Sender {
	s := &Sender{m: m, requests: make([]request, cpus), done: make(chan struct{}, 1)}
	for i := range s.requests {
		s.requests[i].tick = Ticket(id*cpus + i)
	}
	return s
}

// Sender is the id-th of the machine's senders.
func (m *Machine) Sender(id int) *Sender { return m.senders[id] }

// Answered tells whether every target of the last Send has answered.
func (s *Sender) Answered() bool { return s.left.Load() == 0 }

// Send interrupts every online CPU but from, and returns how many that are; lazy
// leaves out those in user space, who will catch up. No other Send may follow
// before all have Answered.
func (s *Sender) Send(from int, cause Cause, lazy bool) int {
	// Inside stop_machine the lock is held, and must not be taken twice: a CPU
	// that waits to be unplugged would stand between.
	if !s.stopped {
		s.m.hotplug.RLock()
		defer s.m.hotplug.RUnlock()
	}
	return s.send(from, cause, lazy)
}

func (s *Sender) send(from int, cause Cause, lazy bool) int {
	m := s.m
	targets := 0
	for cpu := range m.online {
		r := &s.requests[cpu]
		if r.sent = cpu != from && m.online[cpu].Load() && !(lazy && s.leaveOut(cpu, cause)); r.sent {
			targets++
		}
	}
	if int(cause) < NumCauses {
		m.Ledger.cpus[from].rounds[cause].Add(1)
		m.Ledger.sent[cause].Add(uint64(targets))
		if l := m.listener; l != nil {
			s.round = m.rounds.Add(1)
			l.Round(s.round, from, cause, targets, m.Now())
		}
	}
	asked := targets
	if cause == Quiesce {
		asked += s.askParked()
	}
	s.left.Store(int32(asked))
	kind := unmaskable
	if m.code.Maskable(cause) {
		kind = maskable
	}
	for cpu := range m.online {
		r := &s.requests[cpu]
		if !r.sent {
			continue
		}
		r.cause = cause
		m.boxes[cpu].push(kind, r)
		m.runners[cpu].ring()
	}
	return targets
}

// leaveOut leaves a CPU out, if it is in user space; one that must not come into a
// machine that stands still finds that out before it is left out.
func (s *Sender) leaveOut(cpu int, cause Cause) bool {
	if cause != Stop {
		return s.m.leaveOut(cpu)
	}
	s.m.stopped[cpu].Store(true)
	out := s.m.leaveOut(cpu)
	s.m.stopped[cpu].Store(out)
	return out
}

// Wait waits for every answer to the last Send. The CPU that the sender sits on
// keeps answering interrupts meanwhile, as smp_call_function_many_cond does:
// two senders that wait for each other would stand still otherwise.
func (s *Sender) Wait(l *Lease) {
	s.m.waiting.Add(1)
	defer s.m.goOn()
	for {
		l.answerInterrupts()
		if s.Answered() {
			return
		}
		select {
		case <-s.done:
		case <-l.r.bell:
		}
	}
}

// refresh recomputes which versions no CPU can fetch any more. One that is brought up
// fetches before it is online.
func (m *Machine) refresh() {
	oldest := m.Seq()
	for _, r := range m.runners {
		oldest = min(oldest, Seq(r.synced.Load()))
	}
	m.Text.oldest.Store(uint64(oldest))
}

// StopMachine asks every other CPU to stand still with interrupts off
// (stop_machine_cpuslocked, kernel/stop_machine.c); Stopped tells whether all do.
// It is false while somebody else's machine stands still: arrive there first. No
// CPU can be plugged or unplugged until ResumeMachine. lazy: those in user space are left
// out, and Resumed is false for them too until then.
func (s *Sender) StopMachine(from int, lazy bool) bool {
	m := s.m
	if !m.stopping.CompareAndSwap(false, true) {
		return false
	}
	m.hotplug.RLock()
	s.stopped = true
	m.arrived.Store(0)
	s.arriving = int32(s.send(from, Stop, lazy))
	return true
}

// Stopped tells whether everybody whom the last StopMachine asked stands still.
func (s *Sender) Stopped() bool {
	return s.Answered() && s.m.arrived.Load() == s.arriving
}

// ResumeMachine lets the CPUs go on; each fetches afresh first.
func (s *Sender) ResumeMachine() {
	for cpu := range s.m.stopped {
		s.m.stopped[cpu].Store(false)
	}
	s.stopped = false
	s.m.hotplug.RUnlock()
	s.m.stopping.Store(false)
}

// Arrive implements Shared.
func (m *Machine) Arrive(cpu int) {
	m.stopped[cpu].Store(true)
	m.arrived.Add(1)
}

// Resumed implements Shared.
func (m *Machine) Resumed(cpu int) bool { return !m.stopped[cpu].Load() }

// Space is where an isolated CPU is, for rounds that leave out those in user space
// (context_tracking's state and work bits, include/linux/context_tracking_state.h;
// deferring by them was proposed by Schneider, "context_tracking,x86: Defer some
// IPIs until a user->kernel transition", linux-kernel, 2022 to 2025). The zero value
// is in the kernel.
type Space uint8

// The bits of a Space.
const (
	InUser Space = 1 << iota
	owes         // rounds have left the CPU out
)

// LeaveOut marks a CPU in user space as owing a synchronisation, and tells whether it
// is there.
func (s Space) LeaveOut() (Space, bool) {
	if s&InUser == 0 {
		return s, false
	}
	return s | owes, true
}

// Owes tells whether rounds have left the CPU out, which it makes up for when it enters
// the kernel.
func (s Space) Owes() bool { return s&owes != 0 }

// leaveOut leaves a CPU out: in one access, so that a CPU that comes in meanwhile is
// either interrupted or sees the mark.
func (m *Machine) leaveOut(cpu int) bool {
	for at := &m.space[cpu]; ; {
		was := at.Load()
		is, out := Space(was).LeaveOut()
		if at.CompareAndSwap(was, uint32(is)) {
			return out
		}
	}
}

// EnterKernel implements Shared.
func (m *Machine) EnterKernel(cpu int) Space { return Space(m.space[cpu].Swap(0)) }

// LeaveKernel implements Shared.
func (m *Machine) LeaveKernel(cpu int) { m.space[cpu].Store(uint32(InUser)) }
