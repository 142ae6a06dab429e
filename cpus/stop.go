package cpus

import (
	"runtime"
)

// StopMachine makes every other CPU stand still with interrupts off
// (stop_machine_cpuslocked, kernel/stop_machine.c) and returns when all do. No
// CPU can be plugged or unplugged until ResumeMachine.
func (s *Sender) StopMachine(l *Lease) {
	m := s.m
	m.hotplug.RLock()
	s.stopped = true
	m.arrived.Store(0)
	targets := s.send(l.CPU(), Stop)
	s.Wait(l)
	for m.arrived.Load() != int32(targets) {
		l.answerInterrupts()
		runtime.Gosched()
	}
}

// ResumeMachine lets the CPUs go on; each fetches afresh first.
func (s *Sender) ResumeMachine() {
	for cpu := range s.m.stopped {
		s.m.stopped[cpu].Store(false)
	}
	s.stopped = false
	s.m.hotplug.RUnlock()
}

// Arrive implements Shared.
func (m *Machine) Arrive(cpu int) {
	m.stopped[cpu].Store(true)
	m.arrived.Add(1)
}

// Resumed implements Shared.
func (m *Machine) Resumed(cpu int) bool { return !m.stopped[cpu].Load() }
