// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestHoldHotplug: any number may keep CPUs from being brought up (cpus_read_lock), each for
// itself; one CPU at a time comes up, and until it has nobody keeps it from that.
func TestHoldHotplug(t *testing.T) {
	m := newFixture(t, "x86_64", 1, []Role{Busy, Offline, Offline}, noHandler{}, Weak).Machine
	for range 2 { // as often as one likes
		for held := range 3 {
			if held > 0 && m.BringUp(1) {
				t.Errorf("a CPU is brought up while %d keep it down", held)
			}
			if !m.HoldHotplug() {
				t.Errorf("of %d the last cannot keep CPUs down", held+1)
			}
		}
		for held := 3; held > 0; held-- {
			if m.BringUp(1) {
				t.Errorf("a CPU is brought up while %d keep it down", held)
			}
			m.LetHotplug()
		}
		if !m.BringUp(1) {
			t.Error("nobody keeps CPUs down, and none can be brought up")
		}
		if m.BringUp(2) || m.HoldHotplug() {
			t.Error("while a CPU comes up another does, or somebody keeps it from that")
		}
		m.EndHotplug(1)
	}
}

// TestTakeDown: a CPU goes offline when it owes no answer, nobody holds the lock of hotplug, and another one is left for
// patchers; rounds pass over it from then on.
func TestTakeDown(t *testing.T) {
	f := newFixture(t, "x86_64", 1, busy(3), noHandler{}, Weak)
	down := func(cpu int, want bool, why string) {
		t.Helper()
		if got := f.TakeDown(cpu); got != want || f.Online(cpu) == got {
			t.Errorf("%s: CPU %d goes offline: %v, and is online: %v; want %v", why, cpu, got, f.Online(cpu), want)
		}
	}
	f.HoldHotplug()
	down(1, false, "somebody holds the lock")
	f.LetHotplug()
	s := f.Sender(0)
	if n := s.Send(0, Sync, false); n != 2 {
		t.Fatalf("%d targets", n)
	}
	down(1, false, "it is asked")
	for cpu := 1; cpu <= 2; cpu++ {
		taken, ok := f.Take(cpu, false)
		if !ok {
			t.Fatalf("nothing waits for CPU %d", cpu)
		}
		f.Answer(taken.Ticket)
	}
	down(1, true, "nothing keeps it")
	if f.HoldHotplug() || f.BringUp(1) {
		t.Error("the lock is free while a CPU goes offline")
	}
	if n := s.Send(0, Sync, false); n != 1 || f.Pending(1, false) {
		t.Errorf("%d targets, and CPU 1 is asked: %v", n, f.Pending(1, false))
	}
	f.EndHotplug(1)
	taken, _ := f.Take(2, false)
	f.Answer(taken.Ticket)
	down(2, true, "two are left")
	f.EndHotplug(2)
	down(0, false, "it is the last one")
}

// TestGoesAndComes: a CPU that goes its way down and up again, step by step: rounds pass over it from the first step of the
// one to the step of the other that says so, and it fetches afresh when it comes back.
func TestGoesAndComes(t *testing.T) {
	f := newFixture(t, "x86_64", 1, busy(2), noHandler{}, Weak)
	comesUp(t, f.code, DoComeOnline)
	path, err := f.code.Path.Replace(OnDown, DoGoOffline, DoCallEarly)
	if err != nil {
		t.Fatal(err)
	}
	f.code.Path = path
	l := f.Lockstep()
	step := func(takes Choice) CPU {
		l.Step(1, enters{takes})
		return l.CPU(1)
	}
	step(ChooseDown) // looks for interrupts first
	if c := step(ChooseDown); f.Online(1) || !c.Offline(f.code) || c.Phase != Crossing || c.Houses() {
		t.Fatalf("it has not gone: %+v", c)
	}
	for n := 0; l.CPU(1).Phase != Down; n++ {
		if c := step(ChooseMask); n > 20 || f.Online(1) || !c.Offline(f.code) {
			t.Fatalf("step %d on its way down: %+v", n, c)
		}
	}
	if c := l.CPU(1); c.Houses() || !c.Preemptible() {
		t.Errorf("a CPU that is down: %+v", c)
	}
	f.Store(0, 0, f.code.Len, f.on[0])
	if c := step(ChooseEnter); c.Synced != f.Seq() || !c.Offline(f.code) {
		t.Errorf("it comes up, and synchronised at %d of %d", c.Synced, f.Seq())
	}
	if c := step(ChooseEnter); !f.Online(1) || c.Offline(f.code) || c.Phase != Boundary || !f.HoldHotplug() {
		t.Errorf("it is not back: %+v", c)
	}
}
