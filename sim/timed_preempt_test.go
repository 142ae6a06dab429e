package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sim/timed"
)

// shortly is long for a machine that gets on, and short for one that does not.
func shortly(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, fmt.Errorf("stuck"))
	t.Cleanup(cancel)
	return ctx
}

// TestUpdateEndsWhileTasksAreAway: where so many tasks are preempted that there is
// always one that is away, an update is over all the same.
func TestUpdateEndsWhileTasksAreAway(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away = 2000, 1e6 // one call of a tracer in 20 is preempted
	c := timedConfig(t, "x86_64", "native", "gen:n=40,groups=1,order=sorted", "16", k)
	c.Preempt = true
	m := newTimedFor(t, c, timed.HotOnly)
	for i := range 4 {
		if _, err := m.Update(shortly(t), i%2 == 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range m.Violations() {
		t.Error(v)
	}
}

// TestGracePeriodOnTheirCPU: a patcher that has moved to a CPU whose task was
// preempted sleeps there while it waits for that task, which goes on meanwhile.
func TestGracePeriodOnTheirCPU(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away = 2000, 1e7
	for seed := range uint64(20) {
		for _, arch := range cpus.ArchNames() {
			c := timedConfig(t, arch, "native", "gen:n=64,groups=1,order=sorted", "4", k)
			c.Preempt, c.Migrate, c.Seed, c.Buffer.Slots = true, true, seed, 2
			m := newTimedFor(t, c, timed.HotOnly)
			for i := range 2 {
				if _, err := m.Update(shortly(t), i%2 == 0); err != nil {
					t.Fatalf("%s, seed %d: %v", arch, seed, err)
				}
			}
			for _, v := range m.Violations() {
				t.Error(v)
			}
		}
	}
}

// TestTasksWaitForTheirCPU: a preempted task whose CPU is taken waits for it, and
// does not ask again and again, even where switching takes no time.
func TestTasksWaitForTheirCPU(t *testing.T) {
	k := plainCosts()
	k.TickInterval, k.Away, k.Switch, k.Store = 2000, 1e6, 0, 1e5
	for seed := range uint64(10) {
		c := timedConfig(t, "x86_64", "native", "gen:n=64,groups=1,order=sorted", "4", k)
		c.Calls, c.Preempt, c.Migrate, c.Seed, c.Buffer.Slots = 1e5, true, true, seed, 2
		m := newTimedFor(t, c, timed.HotOnly)
		row, err := m.Update(shortly(t), true)
		if err != nil {
			t.Fatal(err)
		}
		if row.Modelled.Events > 100*row.Calls {
			t.Errorf("seed %d: %d events for %d calls", seed, row.Modelled.Events, row.Calls)
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
			c := timedConfig(t, arch, "native", "gen:n=64,groups=1,order=sorted", "4", k)
			c.Preempt, c.Mutation = true, mutation
			m := newTimedFor(t, c, timed.HotOnly)
			toggle(t, m)
			freed := false
			for _, v := range m.Violations() {
				freed = freed || v.Property == cpus.UseAfterFree
			}
			if freed != (mutation != "") {
				t.Errorf("%s, %q: %v", arch, mutation, m.Violations())
			}
		}
	}
}
