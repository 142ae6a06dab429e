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
		if !r.stroll.still.Load() && !r.asleep.Load() {
			return false
		}
	}
	return true
}

// TestGaits: a machine that rests does nothing, answers all the same, and runs again.
func TestGaits(t *testing.T) {
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
		m.SetGait(Resting)
		wait("they rest", m.still)
		rested := calls()
		// Whoever counts takes each CPU over once, which wakes it for a quantum or two.
		const most = 100 * quantum
		for range 10 {
			if n := calls() - rested; n > 10*most {
				t.Fatalf("%d calls at rest", n)
			}
		}
		wait("they rest again", m.still)
		m.SetGait(Paced)
		wait("they make a call now and then", func() bool { return calls() > rested })
		m.SetGait(Running)
		from := calls()
		wait("they run", func() bool { return calls() > from+100*most })
	}
}
