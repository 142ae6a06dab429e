// SPDX-License-Identifier: Apache-2.0

package cpus

import "testing"

// TestParkLeavesOthersRequests: a task that is preempted takes a grace period's request
// with it that its CPU has not taken, unless it owes an answer to another one: then the
// request stays, or its sender would wait for ever.
func TestParkLeavesOthersRequests(t *testing.T) {
	for _, owes := range []bool{false, true} {
		f := newFixture(t, "x86_64", 1, []Role{Busy, Busy}, noHandler{}, Weak)
		l := f.Lockstep()
		l.Change(1, func(c *CPU) { c.Phase, c.Quiet = Calling, owes })
		f.Sender(0).Send(0, Quiesce, false)
		if l.Park(1); f.Pending(1, false) != owes {
			t.Errorf("the task owed an answer: %t; a request waits: %t", owes, f.Pending(1, false))
		}
		if !f.parked[1].Quiet {
			t.Errorf("the task owed an answer: %t; it owes none now", owes)
		}
	}
}
