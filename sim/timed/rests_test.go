// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// TestVacant: a preempted task has its CPU back when nothing runs there and no patcher that works sits on it.
func TestVacant(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Machine, s *cpuState)
		want   bool
	}{
		"at rest":          {func(*Machine, *cpuState) {}, true},
		"it works":         {func(_ *Machine, s *cpuState) { s.active = true }, false},
		"inside of a call": {func(_ *Machine, s *cpuState) { s.cpu.Phase = cpus.Calling }, false},
		"leased":           {func(_ *Machine, s *cpuState) { s.leased = true }, false},
		"the patcher sleeps": {func(m *Machine, s *cpuState) {
			s.leased, m.patch.awaits, m.patch.sent = true, forAnswers,
				cpus.Quiesce
		}, true},
		"for CPUs": {func(m *Machine, s *cpuState) {
			s.leased, m.patch.awaits, m.patch.sent = true, forAnswers, cpus.QuiesceCPUs
		}, true},
		"it spins for a round": {func(m *Machine, s *cpuState) {
			s.leased, m.patch.awaits, m.patch.sent = true, forAnswers,
				cpus.Sync
		}, false},
		"it goes on": {func(m *Machine, s *cpuState) { s.leased, m.patch.sent = true, cpus.Quiesce }, false},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "2", primes())).Machine
		s := &m.cpus[1]
		s.due = true
		c.change(m, s)
		if got := m.vacant(s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		m.vacate(1)
		if _, asked := m.queue.earliest(); asked != c.want || s.due == c.want {
			t.Errorf("%s: it is asked back %v, due %v", name, asked, s.due)
		}
		if s.due = false; c.want {
			m.queue.pop()
		}
		m.vacate(1)
		if _, asked := m.queue.earliest(); asked {
			t.Errorf("%s: nobody waits, and it is given back", name)
		}
	}
}

// TestRests: when a CPU needs no time of its own.
func TestRests(t *testing.T) {
	for name, c := range map[string]struct {
		role   cpus.Role
		change func(m *Machine, s *cpuState)
		want   bool
	}{
		"between calls":     {cpus.Busy, func(*Machine, *cpuState) {}, true},
		"in a call":         {cpus.Busy, func(_ *Machine, s *cpuState) { s.cpu.Phase = cpus.Calling }, false},
		"interrupted":       {cpus.Busy, func(_ *Machine, s *cpuState) { s.boxed = true }, false},
		"asleep":            {cpus.Idle, func(*Machine, *cpuState) {}, true},
		"awake":             {cpus.Idle, func(_ *Machine, s *cpuState) { s.cpu.Phase = cpus.Boundary }, false},
		"awake for a while": {cpus.Idle, func(m *Machine, s *cpuState) { s.cpu.Phase, s.stay = cpus.Boundary, m.now+1 }, true},
		"until now":         {cpus.Idle, func(m *Machine, s *cpuState) { s.cpu.Phase, s.stay = cpus.Boundary, m.now }, false},
		"leased":            {cpus.Idle, func(_ *Machine, s *cpuState) { s.cpu.Phase, s.leased = cpus.Boundary, true }, true},
		"stopped":           {cpus.Busy, func(_ *Machine, s *cpuState) { s.cpu.Phase, s.stopped = cpus.Stopped, true }, true},
		"stopped and asked": {cpus.Busy, func(_ *Machine, s *cpuState) {
			s.cpu.Phase, s.stopped, s.boxed, s.box = cpus.Stopped, true, true, cpus.Quiesce
		}, true},
		"goes on": {cpus.Busy, func(_ *Machine, s *cpuState) { s.cpu.Phase = cpus.Stopped }, false},
	} {
		m := newRig(t, plain("x86_64", "breakpoint", 1, "busy=1,"+c.role.String()+"=1", primes())).Machine
		m.now = 50
		s := &m.cpus[1]
		c.change(m, s)
		if name == "stopped and asked" {
			c.want = !m.Pending(1, true)
		}
		if got := m.rests(s); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLineOfNobodyElse: who takes part in the sharing of a count, and when.
func TestLineOfNobodyElse(t *testing.T) {
	for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef} {
		c := plain("x86_64", "breakpoint", 1, "2", primes())
		c.Refs = refs
		m := newRig(t, c).Machine
		s := &m.cpus[1]
		for p := cpus.Boundary; p <= cpus.Down; p++ {
			s.cpu.Phase = p
			want := refs == int3.SharedRef && (p == cpus.Trapped || p == cpus.Leaving)
			if got := m.contends(s); got != want {
				t.Errorf("%v, phase %d: %v", refs, p, got)
			}
			if s.line.granted = true; m.contends(s) {
				t.Errorf("%v, phase %d: it has the line, and waits for it", refs, p)
			}
			s.line.granted = false
		}
	}
	l := line{waiting: make([]int32, 4), rng: saying(0.25)}
	for cpu := range int32(3) {
		l.push(cpu + 1)
	}
	if got := l.pop(0.25); got != 1 { // a lot is drawn below the share
		t.Errorf("CPU %d is next, want 1", got)
	}
}
