// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
	"github.com/textpoke/textpoke/sim/timeline"
)

// plainCosts are round numbers that add up to times which are easy to tell apart.
func plainCosts() calibration.Costs {
	return calibration.Costs{
		RoundSetup: 500, Send: 50, Delivery: 1000, Jitter: 200, IdleWake: 2000, Handler: 800, Answer: 100, StopWake: 5000,
		Verify: 30, Publish: 40, Store: 600, StoreLiteral: 400, Fence: 50,
		TrapEntry: 200, TrapExit: 200, Comparison: 5, Reference: 10, LineTransfer: 100,
		UserEntry: 100, UserExit: 100, CatchUp: 100, MaskedStretch: 10_000, FetchLag: 2000, GracePeriod: 1e6,
		Switch: 1500, TickInterval: 4e6, Away: 1e6, Migration: 5000,
		Calls: 1e6, Skew: 1, Tracer: 100, Entries: 1000, KernelStretch: 2000,
	}
}

// timedConfig is a combination for the timed engine.
func timedConfig(t testing.TB, arch, protocol, table, roles string, costs calibration.Costs) Config {
	c := config(t, arch, protocol, table, roles)
	c.Calibration = &calibration.Calibration{Name: "test", Arch: arch, CPUs: len(c.Roles), Costs: costs}
	return c
}

func newTimedFor(t testing.TB, c Config, calls timed.Thinning) *Timed {
	t.Helper()
	m, err := newTimed(newJob(t, c), calls)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// toggle enables and disables everything.
func toggle(t testing.TB, m *Timed) (rows [2]RunRow) {
	t.Helper()
	for i, enable := range []bool{true, false} {
		row, err := m.Update(t.Context(), enable)
		if err != nil {
			t.Fatal(err)
		}
		row.Modelled.EventRate = 0 // of the wall clock
		rows[i] = row
	}
	return rows
}

// TestTimedAgrees: every protocol on every architecture, with every kind of CPU, does
// on the timed engine what its plan says, breaks nothing that it does not break
// elsewhere, and leaves every site as it should be.
func TestTimedAgrees(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, buffer := range []sched.Buffer{{Slots: 7}, sched.Dynamic} {
				t.Run(fmt.Sprintf("%s/%s/%s", arch, protocol, buffer), func(t *testing.T) {
					c := timedConfig(t, arch, protocol, "gen:n=40,groups=3,order=grouped",
						"busy=3,idle=1,isolated=2,irqsoff=2,offline=1", plainCosts())
					c.Buffer, c.Migrate = buffer, true
					j, err := NewJob(c)
					if err != nil {
						t.Fatal(err)
					}
					if j.check() != nil {
						t.Skip("cannot work there")
					}
					m := newTimedFor(t, c, timed.HotOnly)
					for _, row := range toggle(t, m) {
						count, err := j.Count(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if row.Rounds != count.Rounds || row.Stops != count.Stops || row.Lazy == 0 && row.IPIs != count.IPIs {
							t.Errorf("%s: %d rounds, %d stops, %d interrupts; the plan has %d, %d, %d",
								row.Direction, row.Rounds, row.Stops, row.IPIs, count.Rounds, count.Stops, count.IPIs)
						}
						if row.Lost > 0 {
							t.Errorf("%s: %d calls lost", row.Direction, row.Lost)
						}
					}
					if torn := j.torn > 0 && j.protocol.OneStore; !torn {
						for _, v := range m.Violations() {
							t.Error(v)
						}
					}
				})
			}
		}
	}
}

// TestTimedTimeline: what the timeline of a run in virtual time shows is what its
// ledger says.
func TestTimedTimeline(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"breakpoint", "stop-machine"} {
			c := timedConfig(t, arch, protocol, "gen:n=200,groups=2,order=sorted", "busy=4,idle=1,isolated=1,irqsoff=1",
				plainCosts())
			c.Buffer.Slots = 64
			var out bytes.Buffer
			c.Timeline = timeline.New(&out, nil, 0)
			m := newTimedFor(t, c, timed.HotOnly)
			rows := toggle(t, m)
			f := readTimeline(t, c.Timeline, &out)
			checkTimeline(t, f.Under(m.job.String()), m.Counts(), [2]uint64{
				rows[0].Traps + rows[1].Traps - rows[0].Misses - rows[1].Misses, rows[0].Misses + rows[1].Misses,
			})
		}
	}
}
