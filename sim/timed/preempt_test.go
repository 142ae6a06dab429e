// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// TestUpdateEndsWhileTasksAreAway: where so many tasks are preempted that there is
// always one that is away, an update is over all the same.
func TestUpdateEndsWhileTasksAreAway(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away = 2000, 1e6 // one call of a tracer in 20 is preempted
	c := plain("x86_64", "native", 40, "16", k)
	c.Preempt = true
	m := newRig(t, c)
	for i := range 4 {
		m.update(i%2 == 0)
	}
	m.whole()
}

// TestGracePeriodOnTheirCPU: a patcher that has moved to a CPU whose task was
// preempted sleeps there while it waits for that task, which goes on meanwhile.
func TestGracePeriodOnTheirCPU(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away = 2000, 1e7
	for seed := range uint64(20) {
		for _, arch := range cpus.ArchNames() {
			c := plain(arch, "native", 64, "4", k)
			c.Preempt, c.Migrate, c.Seed, c.Slots = true, true, seed, 2
			m := newRig(t, c)
			for i := range 2 {
				m.update(i%2 == 0)
			}
			m.whole()
		}
	}
}

// TestTasksWaitForTheirCPU: a preempted task whose CPU is taken waits for it, and
// does not ask again and again, even where switching takes no time.
func TestTasksWaitForTheirCPU(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away, k.Switch, k.Store = 2000, 1e6, 0, 1e5
	for seed := range uint64(10) {
		c := plain("x86_64", "native", 64, "4", k)
		c.Costs.Calls, c.Preempt, c.Migrate, c.Seed, c.Slots = 1e5, true, true, seed, 2
		out := newRig(t, c).update(true)
		if sum := out.sum(); out.Events > 100*sum.Calls() {
			t.Errorf("seed %d: %d events for %d calls", seed, out.Events, sum.Calls())
		}
	}
}

// TestTasksMeetWhatIsFreed: without a grace period the tracer is freed while tasks are
// on their way to it.
func TestTasksMeetWhatIsFreed(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away = 2000, 1e6
	for _, arch := range cpus.ArchNames() {
		for _, mutation := range []string{"", "no-grace-period"} {
			c := plain(arch, "native", 64, "4", k)
			c.Preempt, c.mutation = true, mutation
			m := newRig(t, c)
			m.toggle()
			if n := m.found()[cpus.UseAfterFree]; (n > 0) != (mutation != "") {
				t.Errorf("%s, %q: %v", arch, mutation, m.found())
			}
		}
	}
}
