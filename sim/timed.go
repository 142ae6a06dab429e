// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/timed"
)

// Timed is a job on the machine in virtual time. Its Config's Calibration says what
// everything takes; without one it only counts.
type Timed struct {
	machine *timed.Machine // nil without a calibration
	config  timed.Config   // of it
	updater
}

// NewTimed builds the machine.
func NewTimed(j *Job) (*Timed, error) {
	return newTimed(j, timed.HotOnly)
}

func newTimed(j *Job, calls timed.Thinning) (*Timed, error) {
	t := &Timed{updater: updater{job: j, counts: cpus.NewCounts(len(j.Roles))}}
	switch {
	case j.Calibration == nil && j.Mutation != "":
		return nil, fmt.Errorf(
			"mutation %s on the timed engine: without a calibration nothing is executed that it could break: name one",
			j.Mutation,
		)
	case j.Calibration == nil:
		return t, nil
	}
	if arch := j.Calibration.Arch; arch != j.shape.Traits.Name {
		return nil, fmt.Errorf("calibration %s is of a machine of %s, not of %s", j.Calibration.Name, arch,
			j.shape.Traits.Name)
	}
	if lag := j.Calibration.Costs.FetchLag; j.Mutation != "" {
		j.Log.Warn("a run that finds nothing says little of a defect: CPUs fetch old text for no longer than the "+
			"calibration's fetch lag; textpoke check decides", zap.String("mutation", j.Mutation), zap.Float64("fetch_lag_ns",
			lag))
	}
	sites, err := j.sites()
	if err != nil {
		return nil, err
	}
	called := len(sites.code.Sites)
	for _, enable := range []bool{true, false} {
		entries, err := j.Scenario.Entries(j.Table, enable)
		if err != nil {
			return nil, err
		}
		most := 0 // sites that an entry changes
		for _, e := range entries {
			most = max(most, e.Pokes)
		}
		if err := sites.addAux(j, most-len(sites.aux.patch)); err != nil {
			return nil, err
		}
	}
	tracing, err := newTracing(j, &sites.code)
	if err != nil {
		return nil, err
	}
	t.config = timed.Config{
		Called: called,
		Code:   &sites.code, Roles: j.Roles, Costs: j.costs(), Lookup: j.Lookup, Refs: j.Refs,
		NopOps: nopOps, Initial: sites.initial, Slots: j.slots(),
		Seed: j.Seed, Filling: j.mutation.Filling, Migrate: j.Migrate, Preempt: j.Preempt, Calls: calls,
		Listener: listen(j), OutOfTurn: cmp.Or(j.OutOfTurn, timed.UsuallyOutOfTurn),
	}
	if t.machine, err = timed.New(t.config); err != nil {
		return nil, err
	}
	t.updater = newUpdater(j, t.machine, sites, tracing)
	return t, t.machine.AddOps(t.ops)
}

// Close implements Engine: nothing runs.
func (t *Timed) Close() {}

// Update enables or disables all sites of the job with one update. It returns the counts,
// and the time that it would have taken. Violations are no error.
func (t *Timed) Update(ctx context.Context, enable bool) (RunRow, error) {
	row, err := t.update(ctx, "timed", enable, func(u *poke.Update, row *RunRow) error {
		parts, err := t.parts(u, enable)
		if err != nil {
			return err
		}
		dispatched := t.tracing.all()
		start := time.Now()
		out, err := t.machine.Update(ctx, parts...)
		if err != nil {
			return err
		}
		t.fill(row, &out, time.Since(start))
		row.Modelled.reach = &reach{config: row.Config, estimate: timed.NewEstimate(&t.config, parts, &out)}
		if t.tracing != nil {
			d := t.tracing.all().add(dispatched, -1)
			row.Dispatched = &d
		}
		t.checkDeferred(t.job, row)
		return nil
	})
	if err == nil && t.machine == nil {
		row.CountedOnly = true
		t.counts = t.counts.Plus(row.counts())
	}
	return row, err
}

// counts are the interrupts of a row that was only counted: its one patcher stays where
// it is, and isolated CPUs in user space.
func (r *RunRow) counts() cpus.Counts {
	c := cpus.NewCounts(len(r.Roles))
	sender := cpus.Housekeeper(r.Roles)
	planned, lazy := r.planned()
	for k, rounds := range planned {
		c.Rounds[sender][k] = uint64(rounds)
		for cpu, role := range r.Roles {
			n := rounds
			switch {
			case cpu == sender || role == cpus.Offline:
				continue
			case role == cpus.Isolated:
				n -= lazy[k]
			}
			c.Taken[cpu][k] = uint64(n)
			c.Sent[k] += uint64(n)
		}
	}
	return c
}

// Pass lets virtual time pass between updates, until a moment of the machine's clock, which begins
// at 0: only events cost anything. Without a calibration there is no time.
func (t *Timed) Pass(ctx context.Context, until timed.Nanos) error {
	if t.machine == nil {
		return nil
	}
	return t.machine.Pass(ctx, until)
}

// Life is what has happened to a CPU since the machine was built.
func (t *Timed) Life(cpu int) timed.Life {
	if t.machine == nil {
		return timed.Life{}
	}
	return t.machine.Life(cpu)
}

// fill writes what the machine has counted and timed into the row.
func (t *Timed) fill(row *RunRow, out *timed.Outcome, wall time.Duration) {
	row.Counts, row.Tallies, row.Stolen = out.Counts, out.Tallies, out.Stolen
	v := &Modelled{
		Calibration: t.job.Calibration.Name,
		Update:      out.Update, Grace: out.Grace, Exposure: out.Exposure, Events: out.Events,
		EventRate: float64(out.Events) / wall.Seconds(),
		Deferred:  out.LeftOut, CatchUps: out.CaughtUp,
	}
	var sum timed.Nanos
	online := 0
	for cpu, role := range t.job.Roles {
		stolen := out.Stolen[cpu]
		switch role {
		case cpus.Offline:
			continue
		case cpus.Isolated:
			v.IsolatedStolen = max(v.IsolatedStolen, stolen)
			if quiet := out.Quiet[cpu]; !v.HasQuiet || quiet < v.IsolatedQuiet {
				v.IsolatedQuiet, v.HasQuiet = quiet, true
			}
		}
		online++
		sum += stolen
		v.StolenMax = max(v.StolenMax, stolen)
	}
	v.StolenMean = float64(sum) / float64(online)
	row.Modelled = v
}

// Ranges is how far an update's modelled times may be off, over the intervals of the
// calibration's quantities.
type Ranges struct {
	Update, Stolen, Exposure calibration.Spread
}

// reach is what ranges are worked out from, once somebody asks.
type reach struct {
	config   *Config
	estimate *timed.Estimate
	once     sync.Once
	ranges   *Ranges
}

// Ranges are those of the update; nil where none was executed. They draw the costs and scale the engine's times as the
// estimate's go.
func (v *Modelled) Ranges() *Ranges {
	if v == nil || v.reach == nil {
		return nil
	}
	v.reach.once.Do(func() {
		c, e := v.reach.config, v.reach.estimate
		s := c.Calibration.Spreads(c.Seed, calibration.Samples, 3, func(costs *calibration.Costs, out []float64) {
			out[0], out[1], out[2] = e.Figures(c.asked(costs))
		})
		v.reach.ranges = &Ranges{
			Update: to(s[0], float64(v.Update)), Exposure: to(s[1], float64(v.Exposure)), Stolen: to(s[2], v.StolenMean),
		}
	})
	return v.reach.ranges
}

// to scales a spread to the executed time.
func to(s calibration.Spread, likely float64) calibration.Spread {
	if s.Likely == 0 {
		return calibration.Spread{Likely: likely, Low: likely, High: likely}
	}
	s = s.Scaled(likely / s.Likely)
	s.Likely = likely // to the last digit
	return s
}
