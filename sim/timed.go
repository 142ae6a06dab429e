// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/timed"
)

// Timed is a job on the machine in virtual time. Its Config's Calibration says what
// everything takes; without one it only counts.
type Timed struct {
	job     *Job
	sites   *sites
	machine *timed.Machine // nil without a calibration
	config  timed.Config   // of it
	ops     uint64
	tracing *tracing
	counts  cpus.Counts // of all updates so far
	audit
}

// NewTimed builds the machine.
func NewTimed(j *Job) (*Timed, error) {
	return newTimed(j, timed.HotOnly)
}

func newTimed(j *Job, calls timed.Thinning) (*Timed, error) {
	t := &Timed{job: j, counts: cpus.NewCounts(len(j.Roles))}
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
	var err error
	if t.sites, err = j.sites(); err != nil {
		return nil, err
	}
	called := len(t.sites.code.Sites)
	for _, enable := range []bool{true, false} {
		entries, err := j.Scenario.Entries(j.Table, enable)
		if err != nil {
			return nil, err
		}
		if err := t.sites.addAux(j, pokes(entries)-len(t.sites.aux.patch)); err != nil {
			return nil, err
		}
	}
	if t.tracing, err = newTracing(j, &t.sites.code); err != nil {
		return nil, err
	}
	t.config = timed.Config{
		Called: called,
		Code:   &t.sites.code, Roles: j.Roles, Costs: j.costs(), Lookup: j.Lookup, Refs: j.Refs,
		NopOps: nopOps, Initial: t.sites.initial,
		Seed: j.Seed, Filling: j.mutation.Filling, Migrate: j.Migrate, Preempt: j.Preempt, Calls: calls,
		Listener: listen(j), OutOfTurn: cmp.Or(j.OutOfTurn, timed.UsuallyOutOfTurn),
	}
	if j.protocol.Batching == poke.Buffered {
		t.config.Slots = j.Buffer.Slots
	}
	if t.machine, err = timed.New(t.config); err != nil {
		return nil, err
	}
	t.ops = j.ops(t.sites.code.Entry)
	if err := t.machine.AddOps(t.ops); err != nil {
		return nil, err
	}
	t.audit = audit{t.machine, t.sites.code.Len, j.shape.Literals()}
	return t, nil
}

// Violations are the first of the violations since the machine was built.
func (t *Timed) Violations() []cpus.Violation {
	if t.machine == nil {
		return nil
	}
	_, first := t.machine.Violations()
	return first
}

// Counts implements Engine.
func (t *Timed) Counts() cpus.Counts { return t.counts }

// Close implements Engine: nothing runs.
func (t *Timed) Close() {}

// Update enables or disables everything that the job is about, with one update, and
// tells what it did and what that would have taken. Violations are no error.
func (t *Timed) Update(ctx context.Context, enable bool) (RunRow, error) {
	row, err := t.job.runRow(ctx, "timed", enable)
	if err != nil {
		return row, err
	}
	if t.machine == nil {
		row.CountedOnly = true
		t.counts = t.counts.Plus(row.counts())
		return row, nil
	}
	patches := t.job.patches(t.sites, enable)
	u, err := t.job.update(patches, !enable)
	if err != nil {
		return row, err
	}
	if err := t.tracing.begin(enable); err != nil {
		return row, err
	}
	if enable {
		t.machine.SetOps(t.ops, cpus.CalledTracer)
	}
	parts, err := t.parts(u, enable)
	if err != nil {
		return row, err
	}
	dispatched := t.tracing.all()
	before, _ := t.machine.Violations()
	start := time.Now()
	out, err := t.machine.Update(ctx, parts...)
	if err != nil {
		return row, fmt.Errorf("%s: %w", row.Direction, err)
	}
	wall := time.Since(start)
	t.fill(&row, &out, wall)
	row.Modelled.reach = &reach{config: &t.job.Config, estimate: timed.NewEstimate(&t.config, parts, &out)}
	if t.tracing != nil {
		d := t.tracing.all().add(dispatched, -1)
		row.Dispatched = &d
	}
	if err := t.tracing.end(enable); err != nil {
		return row, err
	}
	t.checkSites(patches)
	t.checkRounds(t.job, &row)
	t.checkDeferred(t.job, &row)
	t.checkCalls(&row)
	after, _ := t.machine.Violations()
	row.Violations = after - before
	t.job.Log.Debug("update done", zap.String("direction", row.Direction), zap.Int64("update_ns", int64(out.Update)),
		zap.Uint64("events", out.Events), zap.Duration("wall", wall))
	return row, nil
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

// Pass lets virtual time pass, in which nobody patches, until a moment of the
// machine's clock, which begins at 0: only what happens costs anything. Without a
// calibration there is no time.
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
	t.counts = t.counts.Plus(out.Counts)
	row.sum(t.job.Roles)
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
