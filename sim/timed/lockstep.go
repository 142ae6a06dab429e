// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
)

// Lockstep runs a machine one step at a time, as somebody else says: its CPUs, and one
// patcher, who works on the Lockstep (poke.Ground). Nothing takes any time then. What a
// store has replaced can be fetched until a CPU synchronises, as if Costs.FetchLag had no
// end, and interrupts have arrived when they are sent.
type Lockstep struct {
	*Machine
	under []cpus.CPU // what an NMI has interrupted
}

// NewLockstep builds such a machine; what things take makes no difference. Every CPU is
// between two calls, in the kernel.
func NewLockstep(cfg Config) (*Lockstep, error) {
	cfg.Costs = &calibration.Costs{}
	m, err := build(cfg)
	if err != nil {
		return nil, err
	}
	for i := range m.cpus {
		s := &m.cpus[i]
		s.cpu, s.space = cpus.CPU{ID: int32(i), Role: s.cpu.Role, Synced: 1}, 0
		if s.cpu.Role == cpus.Offline {
			s.cpu.Role = cpus.Busy
			s.cpu.PowerOff()
		}
	}
	return &Lockstep{m, make([]cpus.CPU, len(m.cpus))}, nil
}

// Window implements cpus.Shared.
func (l *Lockstep) Window(site int, synced cpus.Seq, buf []cpus.Version) ([]cpus.Version, cpus.Promise) {
	return l.text.window(site, synced, never, buf), l.text.sites[site].settled
}

// never is before every store.
const never Nanos = -1

// Send implements poke.Ground. A grace period asks CPUs in user space too, as the checker's
// does: they come in and answer.
func (l *Lockstep) Send(c cpus.Cause, lazy bool) {
	if int(c) < cpus.NumCauses {
		l.Machine.Send(c, lazy)
	} else {
		l.quiesce(c, true)
	}
	l.arrived()
}

// StopMachine implements poke.Ground.
func (l *Lockstep) StopMachine(lazy bool) bool {
	defer l.arrived()
	return l.Machine.StopMachine(lazy)
}

// arrived lets time pass until everything that was sent is there; what a CPU makes of it
// is for its steps.
func (l *Lockstep) arrived() {
	for {
		if _, any := l.queue.earliest(); !any {
			break
		}
		e, _ := l.queue.pop()
		l.now = e.at
		if e.what&kindMask == evArrive {
			s := &l.cpus[e.what>>bitsKind]
			s.box, s.boxed = l.patch.sent, true
		}
	}
	l.now = max(l.now, l.patch.busy)
}

// Sit lets the patcher sit on a CPU.
func (l *Lockstep) Sit(_, cpu int) { l.patch.home = cpu }

// Ground is what the patcher works on.
func (l *Lockstep) Ground(int) poke.Ground { return l }

// Stopping tells whether it has the machine stopped.
func (l *Lockstep) Stopping(int) bool { return l.patch.stopped }

// CPU is what a CPU is about, Change changes what only the CPU itself knows, and Tick is
// cpus.CPU.Tick.
func (l *Lockstep) CPU(cpu int) cpus.CPU                { return l.cpus[cpu].cpu }
func (l *Lockstep) Change(cpu int, f func(c *cpus.CPU)) { f(&l.cpus[cpu].cpu) }
func (l *Lockstep) Tick(cpu int)                        { l.cpus[cpu].cpu.Tick(l.code, l) }

// Step lets a CPU make one step.
func (l *Lockstep) Step(cpu int, ch cpus.Chooser) cpus.Event {
	l.pad.Forget()
	event := cpus.Step(&l.cpus[cpu].cpu, l.code, l, ch, l.pad)
	if l.pad.Found {
		l.Report(l.pad.Violation)
	}
	if c := &l.cpus[cpu].cpu; c.Over(l.code) {
		c.Return(l.under[cpu])
	}
	return event
}

// NMI lets a non-maskable interrupt come, whatever the CPU is in the middle of.
func (l *Lockstep) NMI(cpu int) { l.under[cpu] = l.cpus[cpu].cpu.NMI() }

// Park preempts a CPU's task. A grace period that had not asked the CPU yet asks the task.
func (l *Lockstep) Park(cpu int) {
	s := &l.cpus[cpu]
	if s.task = s.cpu.Park(l.code, l); s.boxed && s.box == cpus.Quiesce && !s.task.Owes {
		s.task.Owes, s.boxed = true, false
	}
}

// Unpark lets a CPU go on with the task that was preempted on another one, or on itself.
func (l *Lockstep) Unpark(cpu, from int) {
	t := &l.cpus[from].task
	l.cpus[cpu].cpu.Unpark(*t)
	*t = cpus.Task{}
}

// Stop ends nothing: nothing runs.
func (l *Lockstep) Stop() {}
