// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
)

// Lockstep runs a machine one step at a time, as the caller says: its CPUs, and one patcher
// that works on the Lockstep (poke.Ground). Steps take no time then. A CPU can fetch replaced
// text until it synchronises, as if Costs.FetchLag had no end, and interrupts arrive when they
// are sent.
type Lockstep struct {
	*Machine
	*cpus.Lockstep
}

// NewLockstep builds such a machine; costs make no difference. Every CPU is between two calls, in
// the kernel.
func NewLockstep(cfg Config) (*Lockstep, error) {
	cfg.Costs = &calibration.Costs{}
	m, err := build(cfg)
	if err != nil {
		return nil, err
	}
	l := &Lockstep{Machine: m}
	steps := cpus.Lockstep{Code: m.code, On: l, Report: m.Report, Unask: m.unask}
	for i := range m.cpus {
		s := &m.cpus[i]
		steps.CPUs, steps.Tasks = append(steps.CPUs, &s.cpu), append(steps.Tasks, &s.task)
		s.cpu, s.space = cpus.CPU{ID: int16(i), Role: s.cpu.Role, Synced: 1}, 0
		if s.cpu.Role == cpus.Offline {
			s.cpu.Role = cpus.Busy
			s.cpu.PowerOff()
		}
	}
	l.Lockstep = cpus.NewLockstep(steps)
	return l, nil
}

// unask takes a request of a grace period back that a CPU has not taken yet.
func (m *Machine) unask(cpu int) (which cpus.Ticket, waited bool) {
	s := &m.cpus[cpu]
	if waited = s.boxed && s.box == cpus.Quiesce; waited {
		s.boxed = false
	}
	return 0, waited
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

// arrived lets time pass until everything that was sent is there. The CPUs' own steps deal with
// it.
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
