// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// machine is what every engine's machine can do beside carrying out updates.
type machine interface {
	audited
	// SetOps says what a call through an ops amounts to.
	SetOps(addr uint64, o cpus.Outcome)
	// Violations is how many there were so far, and the first of them.
	Violations() (total uint64, first []cpus.Violation)
}

// updater carries out the updates of a job on some engine: what comes before and behind each of them is
// the same on all engines.
type updater struct {
	job     *Job
	on      machine
	sites   *sites
	ops     uint64 // the tracer's, that enabled sites call
	tracing *tracing
	counts  cpus.Counts // of all updates so far
	audit
}

// newUpdater makes the updater of a machine that was built.
func newUpdater(j *Job, on machine, s *sites, t *tracing) updater {
	return updater{
		job: j, on: on, sites: s, ops: j.ops(s.code.Entry), tracing: t, counts: cpus.NewCounts(len(j.Roles)),
		audit: audit{on, s.code.Len, j.shape.Literals()},
	}
}

// Violations are the first of the violations since the machine was built.
func (u *updater) Violations() []cpus.Violation {
	if u.on == nil {
		return nil
	}
	_, first := u.on.Violations()
	return first
}

// violations is how many there were.
func (u *updater) violations() uint64 {
	n, _ := u.on.Violations()
	return n
}

// Counts are interrupts by CPU and cause since the machine was built.
func (u *updater) Counts() cpus.Counts { return u.counts }

// errDied says that an update ended with its machine: nothing is left to be looked at.
var errDied = errors.New("the machine has died")

// update enables or disables all records of the job: carryOut executes the update and writes the
// machine's counts into the row. Then update holds the text and the tracers against the update.
func (u *updater) update(ctx context.Context, engine string, enable bool,
	carryOut func(patches *poke.Update, row *RunRow) error) (RunRow, error) {
	row, err := u.job.runRow(ctx, engine, enable)
	if err != nil || u.on == nil {
		return row, err
	}
	patches := u.job.patches(u.sites, enable)
	plan, err := u.job.update(patches, !enable)
	if err != nil {
		return row, err
	}
	before := u.violations()
	if err := u.tracing.begin(enable); err != nil {
		return row, err
	}
	if enable {
		u.on.SetOps(u.ops, cpus.CalledTracer)
	}
	err = carryOut(plan, &row)
	if err != nil && !errors.Is(err, errDied) {
		return row, fmt.Errorf("%s: %w", row.Direction, err)
	}
	u.counts = u.counts.Plus(row.Counts)
	row.sum(u.job.Roles)
	if err == nil {
		if err := u.tracing.end(enable); err != nil {
			return row, err
		}
		u.checkSites(patches)
		u.checkRounds(u.job, &row)
		u.checkCalls(&row)
	}
	row.Violations += u.violations() - before
	u.job.Log.Debug("update done", zap.String("direction", row.Direction), zap.Duration("elapsed", row.Elapsed),
		zap.Int("rounds", row.Rounds), zap.Uint64("violations", row.Violations))
	return row, nil
}
