// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
)

// drawnCosts are costs of which any may be 0, usual, or out of all proportion.
// Rates go with the times: what a run costs is bounded, what it models is not.
func drawnCosts(rt *rapid.T) (k calibration.Costs) {
	usual := plainCosts()
	for i := range calibration.Quantities {
		q := &calibration.Quantities[i]
		v := *q.Of(&usual)
		switch q.Name {
		case "calls":
			v = rapid.SampledFrom([]float64{0, 1, 1e5, 1e6, 1e7}).Draw(rt, q.Name)
		case "entries":
			v = rapid.SampledFrom([]float64{0, 1e-300, 1e-9, 1, 1e4, 1e6}).Draw(rt, q.Name)
		case "skew":
			v = rapid.SampledFrom([]float64{0, 0.5, 1, 3, 100}).Draw(rt, q.Name)
		case "tick_interval":
			v = rapid.SampledFrom([]float64{1, 1e3, 1e6, 1e9}).Draw(rt, q.Name)
		default:
			v *= rapid.SampledFrom([]float64{0, 0, 0.001, 1, 1, 1, 100}).Draw(rt, q.Name)
		}
		*q.Of(&k) = v
	}
	return k
}

// drawnTimed is a combination for the timed engine with everything drawn.
func drawnTimed(t *testing.T, rt *rapid.T) Config {
	arch := rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch")
	roles := fmt.Sprintf("busy=%d,irqsoff=%d,idle=%d,isolated=%d,offline=%d",
		rapid.IntRange(1, 4).Draw(rt, "busy"), rapid.IntRange(0, 2).Draw(rt, "irqsoff"), rapid.IntRange(0, 2).Draw(rt,
			"idle"),
		rapid.IntRange(0, 3).Draw(rt, "isolated"), rapid.IntRange(0, 1).Draw(rt, "offline"))
	table := fmt.Sprintf("gen:n=%d,groups=%d,order=grouped", rapid.IntRange(3, 40).Draw(rt, "n"),
		rapid.IntRange(1, 3).Draw(rt, "groups"))
	c := timedConfig(t, arch, rapid.SampledFrom(poke.Names()).Draw(rt, "protocol"), table, roles, drawnCosts(rt))
	if rapid.Bool().Draw(rt, "file") {
		plan := rapid.SampledFrom(poke.ShippedPlans()).Draw(rt, "plan")
		p, err := poke.ParseProtocol(plan.Name, plan.Text)
		if err != nil {
			rt.Fatal(err)
		}
		c.Plan = p
	}
	c.Buffer = sched.Buffer{Slots: rapid.IntRange(0, 20).Draw(rt, "slots")}
	c.Order = rapid.SampledFrom([]sched.Ordering{sched.Table, sched.Sorted, sched.Shuffled, sched.Descending}).Draw(rt,
		"order")
	c.Lookup = int3.Lookup(rapid.IntRange(0, len(int3.LookupNames())-1).Draw(rt, "lookup"))
	c.Refs = int3.Refs(rapid.IntRange(0, len(int3.RefsNames())-1).Draw(rt, "refs"))
	c.Fetch = rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch")
	c.Seed = rapid.Uint64().Draw(rt, "seed")
	c.Migrate, c.Preempt = rapid.Bool().Draw(rt, "migrate"), rapid.Bool().Draw(rt, "preempt")
	if c.Preempt && c.Calibration.Costs.Calls > 1e6 && c.Calibration.Costs.TickInterval < 1e6 {
		c.Calibration.Costs.Calls = 1e6 // or every one of them is an event
	}
	c.OutOfTurn = rapid.SampledFrom([]float64{0, 1e-3, 1}).Draw(rt, "out of turn")
	j, err := NewJob(c)
	if err != nil || j.check() != nil {
		rt.Skip("cannot work there")
	}
	shape := j.shape
	shape.Detach = true
	if rapid.IntRange(0, 2).Draw(rt, "mutated") == 0 { // there is always a grace period to leave out
		names := []string{}
		for _, m := range j.protocol.Mutations(shape) {
			names = append(names, m.Name)
		}
		c.Mutation = rapid.SampledFrom(names).Draw(rt, "mutation")
		// A store that nothing drains waits so long, and every call meanwhile is an event.
		c.Calibration.Costs.TickInterval = min(c.Calibration.Costs.TickInterval, 1e6)
	}
	if k := ledger.For(arch); k != nil && rapid.IntRange(0, 3).Draw(rt, "scenario") == 0 {
		c.Scenario = &Scenario{Name: rapid.SampledFrom(ledger.Scenarios()).Draw(rt, "tracer"), Kernel: k}
	}
	return c
}

// checkRandom checks a property, in long runs with many more draws.
func checkRandom(t *testing.T, property func(rt *rapid.T)) {
	times := 1
	if *long {
		times = 100
	}
	for range times {
		rapid.Check(t, property)
	}
}

// timedCourse is what a machine did in a few updates with pauses between them.
type timedCourse struct {
	Rows       []RunRow
	Lives      []timed.Life
	Violations []string
}

// timedFor carries out a few updates; none may take longer than it should.
func timedFor(t *testing.T, rt *rapid.T, c Config, calls timed.Thinning, pauses []timed.Nanos) (out timedCourse,
	m *Timed) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, fmt.Errorf("stuck"))
	defer cancel()
	m = newTimedFor(t, c, calls)
	until := timed.Nanos(0)
	for i, pause := range pauses {
		row, err := m.Update(ctx, i%2 == 0)
		if err != nil {
			rt.Fatalf("%s: %v", c.String(), err)
		}
		row.Modelled.EventRate, row.Modelled.Events = 0, 0
		out.Rows = append(out.Rows, row)
		until = max(until, m.machine.Now()) + pause
		if err := m.Pass(ctx, until); err != nil {
			rt.Fatalf("%s: pause: %v", c.String(), err)
		}
		if now := m.machine.Now(); now < until {
			rt.Fatalf("%s: time stands at %d, want %d or more", c.String(), now, until)
		}
	}
	for cpu := range c.Roles {
		out.Lives = append(out.Lives, m.Life(cpu))
	}
	for _, v := range m.Violations() {
		v.Why = "" // what a CPU fetched before may be forgotten by then
		out.Violations = append(out.Violations, v.String())
	}
	return out, m
}

// TestTimedRandom: whatever the machine, what things take on it, and what is done
// on it: an update ends, at whole sites, with as many interrupts as its plan has, and
// does the same again. What protocols guarantee holds where nothing was left out.
func TestTimedRandom(t *testing.T) {
	checkRandom(t, func(rt *rapid.T) {
		c := drawnTimed(t, rt)
		pauses := rapid.SliceOfN(rapid.SampledFrom([]timed.Nanos{0, 1, 1e4, 1e9, 1e14}), 1, 4).Draw(rt, "pauses")
		did, m := timedFor(t, rt, c, timed.HotOnly, pauses)
		again, _ := timedFor(t, rt, c, timed.HotOnly, pauses)
		if diff := cmp.Diff(did.Lives, again.Lives, cmp.AllowUnexported(timed.Life{})) + diffRows(did.Rows,
			again.Rows); diff != "" {
			rt.Errorf("%s: not the same again: %s", c.String(), diff)
		}
		checkDone(rt, m, &did)
	})
}

// diffRows compares what a machine did.
func diffRows(a, b []RunRow) (diff string) {
	for i := range a {
		diff += cmp.Diff(a[i].Modelled, b[i].Modelled, cmpopts.IgnoreUnexported(Modelled{})) +
			cmp.Diff(a[i].Counts, b[i].Counts) + cmp.Diff(a[i].Tallies, b[i].Tallies) + cmp.Diff(a[i].Stolen, b[i].Stolen)
	}
	return diff
}

// checkDone holds what was done against the plan, and the rows against each other.
func checkDone(rt *rapid.T, m *Timed, did *timedCourse) {
	j := m.job
	var leftOut, caughtUp uint64
	for i, row := range did.Rows {
		at := fmt.Sprintf("%s: %s", j, row.Direction)
		if k, ok := row.Counts.Conserved(); !ok {
			rt.Errorf("%s: %s is not conserved", at, k)
		}
		plan, err := j.Count(rt.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if err := plan.addTo(j, i%2 == 0); err != nil {
			rt.Fatal(err)
		}
		rounds := 0
		for k := range cpus.NumCauses {
			rounds += int(row.Counts.TotalRounds(cpus.Cause(k)))
		}
		if rounds != row.Rounds+row.Stops || row.Rounds != plan.Rounds || row.Stops != plan.Stops || row.Lazy == 0 &&
			row.IPIs != plan.IPIs {
			rt.Errorf("%s: %d rounds, %d in the row with %d stops and %d interrupts; the plan has %d, %d, %d",
				at, rounds, row.Rounds, row.Stops, row.IPIs, plan.Rounds, plan.Stops, plan.IPIs)
		}
		v := row.Modelled
		for name, ns := range map[string]timed.Nanos{"update": v.Update, "grace": v.Grace, "exposure": v.Exposure,
			"stolen": v.StolenMax, "quiet": v.IsolatedQuiet} {
			if ns < 0 || ns > m.machine.Now() {
				rt.Errorf("%s: %s %d ns of %d", at, name, ns, m.machine.Now())
			}
		}
		if v.Exposure > v.Update {
			rt.Errorf("%s: exposure %d ns of %d", at, v.Exposure, v.Update)
		}
		if row.Calls != row.Traced+row.Untraced {
			rt.Errorf("%s: %d calls, %d traced and %d not", at, row.Calls, row.Traced, row.Untraced)
		}
		leftOut += v.Deferred
		caughtUp += v.CatchUps
		for cpu, role := range j.Roles {
			if role == cpus.Offline && (row.Stolen[cpu] != 0 || row.Tallies[cpu] != (cpus.Tally{}) ||
				row.Counts.Taken[cpu] != [cpus.NumCauses]uint64{}) {
				rt.Errorf("%s: CPU %d is offline and did something", at, cpu)
			}
		}
	}
	var taken uint64
	for cpu, l := range did.Lives {
		taken += l.Taken
		leftOut -= l.LeftOut
		if l.Owed > l.LeftOut || l.CaughtUp > l.LeftOut || l.Stolen < 0 || l.Quiet < 0 || l.Quiet > m.machine.Now() {
			rt.Errorf("%s: CPU %d: %+v", j, cpu, l)
		}
		caughtUp -= min(caughtUp, l.CaughtUp)
	}
	for k := range cpus.NumCauses {
		taken -= m.Counts().TotalTaken(cpus.Cause(k))
	}
	if taken != 0 || leftOut != 0 || caughtUp != 0 {
		rt.Errorf("%s: lives and rows differ by %d interrupts, %d left out, %d made up for", j, int64(taken), int64(leftOut),
			caughtUp)
	}
	for _, v := range m.Violations() {
		switch v.Property {
		case cpus.Conservation, cpus.BrokenSite, cpus.Deadlock:
			rt.Errorf("%s: %s", j, v)
		default:
			if j.Mutation == "" && (j.torn == 0 || !j.protocol.OneStore) && j.Refs != int3.NoRef {
				rt.Errorf("%s: %s", j, v)
			}
		}
	}
}

// addTo adds what a scenario sends to a plan's counts.
func (r *PlanRow) addTo(j *Job, enable bool) error {
	row := RunRow{PlanRow: *r}
	err := row.addOtherRounds(j, enable)
	*r = row.PlanRow
	return err
}

// TestThinningRandom: calls that are left out change nothing, whatever the machine.
func TestThinningRandom(t *testing.T) {
	checkRandom(t, func(rt *rapid.T) {
		c := drawnTimed(t, rt)
		// Every call is executed: few in a long time, or many in a short one.
		if k := &c.Calibration.Costs; k.GracePeriod > 1e6 || k.Away > 1e6 || k.FetchLag > 1e4 {
			k.Calls = min(k.Calls, 1e5)
		}
		pauses := []timed.Nanos{0, 0}
		every, _ := timedFor(t, rt, c, timed.Every, pauses)
		skip, _ := timedFor(t, rt, c, timed.EverySkip, pauses)
		if diff := diffRows(every.Rows, skip.Rows); diff != "" {
			rt.Errorf("%s: %s", c.String(), diff)
		}
		if diff := cmp.Diff(every.Violations, skip.Violations); diff != "" {
			rt.Errorf("%s: %s", c.String(), diff)
		}
	})
}
