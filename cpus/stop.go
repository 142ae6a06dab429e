// SPDX-License-Identifier: Apache-2.0

package cpus

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
