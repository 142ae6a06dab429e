// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"runtime"
	"testing"
	"time"
)

// still tells whether every CPU waits.
func (m *Machine) still() bool {
	for _, r := range m.runners {
		if !r.pause.still.Load() && !r.asleep.Load() {
			return false
		}
	}
	return true
}

// TestQuantum: all CPUs together make as many steps in their quanta as one CPU does, down
// to the shortest quantum.
func TestQuantum(t *testing.T) {
	for cpus, want := range map[int]int{1: 256, 2: 128, 8: 32, 16: 16, 17: 16, 4096: 16} {
		if got := quantumFor(cpus); got != want {
			t.Errorf("%d CPUs: a quantum of %d steps, want %d", cpus, got, want)
		}
	}
}

// TestPacings: a machine that rests does nothing, answers all the same, and runs again.
func TestPacings(t *testing.T) {
	roles, err := ParseRoles("busy=3,idle=1,isolated=1,irqsoff=1,offline=1")
	if err != nil {
		t.Fatal(err)
	}
	m := started(t, "x86_64", 20, roles).Machine
	calls := func() (n uint64) {
		t.Helper()
		all, err := m.Tallies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range all {
			n += one.Calls()
		}
		return n
	}
	wait := func(what string, until func() bool) {
		t.Helper()
		for begun := time.Now(); !until(); runtime.Gosched() {
			if time.Since(begun) > time.Minute {
				t.Fatalf("%s: never", what)
			}
		}
	}
	for range 3 {
		m.SetPacing(Resting)
		wait("they rest", m.still)
		rested := calls()
		// The count takes each CPU over once, which wakes it for a quantum or two.
		const most = 100 * quantaSteps
		for range 10 {
			if n := calls() - rested; n > 10*most {
				t.Fatalf("%d calls at rest", n)
			}
		}
		wait("they rest again", m.still)
		m.SetPacing(Paced)
		wait("they make a call now and then", func() bool { return calls() > rested })
		m.SetPacing(Running)
		from := calls()
		wait("they run", func() bool { return calls() > from+100*most })
	}
}

// TestOwingCPUsGoOn: a CPU that has taken a request and not answered yet does not stop, though it
// is between two calls: nothing would wake it, and the sender would wait for ever.
func TestOwingCPUsGoOn(t *testing.T) {
	roles, err := ParseRoles("busy=2")
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, "x86_64", 20, roles, noHandler{}, Weak)
	r, owed := f.runners[1], 0
	f.SetPacing(Resting)
	for range 200 {
		if s := f.Sender(0); s.Answered() {
			s.Send(0, Quiesce, false)
		}
		for range 20 {
			r.step()
			r.pause.since = aftermath
			if r.cpu.Owes() && r.cpu.BetweenCalls() {
				owed++
				if _, stop := r.mayStop(1); stop {
					t.Fatal("it stops with an answer owed")
				}
			}
		}
	}
	if owed == 0 {
		t.Error("no answer was ever owed between two calls")
	}
}

// TestWaitingPatchersLetCPUsRest: CPUs rest while every patcher waits for answers, and only then.
func TestWaitingPatchersLetCPUsRest(t *testing.T) {
	roles, err := ParseRoles("busy=4")
	if err != nil {
		t.Fatal(err)
	}
	m := started(t, "x86_64", 20, roles).Machine
	want := func(g Pacing, why string) {
		t.Helper()
		if got := m.pacingNow(); got != g {
			t.Errorf("%s: pacing %d, want %d", why, got, g)
		}
	}
	want(Running, "no patcher")
	first := occupy(t, m, 0)
	want(Running, "one that works")
	m.waiting.Add(1)
	want(Resting, "one that waits")
	second := occupy(t, m, 1)
	want(Running, "one of two waits")
	second.Release()
	for deadline := time.Now().Add(time.Minute); !m.runners[2].pause.still.Load(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("CPU 2 does not rest")
		}
	}
	m.goOn()
	want(Running, "the wait is over")
	first.Release()
	if n := m.leases.Load(); n != 0 {
		t.Errorf("%d leases, want 0", n)
	}
}
