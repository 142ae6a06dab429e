// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestLazyStopTellsWhomItLeavesOut: a CPU in user space is not interrupted by a lazy
// stop_machine and not waited for, and finds on its way in that it has to stand still,
// until the machine goes on. One in the kernel is interrupted. A lazy round leaves both as
// they are.
func TestLazyStopTellsWhomItLeavesOut(t *testing.T) {
	for _, arch := range archNames {
		m := newFixture(t, arch, 1, []Role{Busy, Isolated, Isolated}, noHandler{}, Weak).Machine // at rest
		m.LeaveKernel(1)
		s := m.Sender(0)
		if n := s.Send(0, Sync, true); n != 1 || m.Pending(1, false) || !m.Pending(2, false) {
			t.Errorf("%s: a lazy round went to %d CPUs, waits at CPU 1: %v", arch, n, m.Pending(1, false))
		}
		take := func(cpu int) {
			taken, ok := m.Take(cpu, false)
			if !ok {
				t.Fatalf("%s: nothing waits at CPU %d", arch, cpu)
			}
			m.Answer(taken.Ticket)
		}
		take(2)
		if !m.Resumed(1) || !m.Resumed(2) {
			t.Errorf("%s: a round has CPUs stand still", arch)
		}
		if !s.StopMachine(0, true) {
			t.Fatal("somebody else has the machine stopped")
		}
		if m.Pending(1, false) || m.Resumed(1) {
			t.Errorf("%s: CPU 1 is in user space: interrupted %v, may go on when it comes in %v", arch, m.Pending(1, false),
				m.Resumed(1))
		}
		if !m.Pending(2, false) || !m.Resumed(2) {
			t.Errorf("%s: CPU 2 is in the kernel: interrupted %v, stands still before it was %v", arch, m.Pending(2, false),
				!m.Resumed(2))
		}
		take(2)
		if s.Stopped() {
			t.Errorf("%s: CPU 2 has not arrived, and the machine stands still", arch)
		}
		if m.Arrive(2); !s.Stopped() {
			t.Errorf("%s: stop_machine waits for a CPU in user space", arch)
		}
		if is := m.EnterKernel(1); !is.Owes() {
			t.Errorf("%s: CPU 1 was left out, and owes nothing", arch)
		}
		if s.ResumeMachine(); !m.Resumed(1) || !m.Resumed(2) {
			t.Errorf("%s: the machine goes on without some CPU", arch)
		}
	}
}
