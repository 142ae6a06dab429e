// SPDX-License-Identifier: Apache-2.0

// Package modelled runs one update, usually on the timed engine, and has its price for each CPU.
package modelled

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timed"
)

// Update is one update that enables everything. One that was only counted has no
// Modelled, and no time.
type Update struct {
	sim.RunRow
	IsolatedBurst int64 // most interrupts that an isolated CPU takes in a millisecond
}

// Enable runs the update, unless all CPUs together would take more interrupts than
// limit: then it is only counted. One that the lab has kept is not run again.
func Enable(ctx context.Context, lab experiments.Lab, c sim.Config, limit int) (u Update, err error) {
	c.Revision, c.Log = lab.Revision, lab.Log
	j, err := sim.NewJob(c)
	if err != nil {
		return u, err
	}
	if lab.Kept == nil || c.Calibration == nil || c.Timeline != nil || c.Listener != nil {
		return enable(ctx, j, limit)
	}
	asked := struct {
		flags, calibration string
		costs              calibration.Costs
		outOfTurn          float64 // for which there is no flag
		limit              int
	}{strings.Join(j.Flags(), " "), c.Calibration.Hash(), c.Calibration.Costs, c.OutOfTurn, limit}
	u, known := lab.Kept[asked].(Update)
	if !known {
		if u, err = enable(ctx, j, limit); err == nil {
			lab.Kept[asked] = u
		}
	}
	return u, err
}

func enable(ctx context.Context, j *sim.Job, limit int) (u Update, err error) {
	if limit < math.MaxInt {
		count, err := j.Count(ctx)
		if err != nil || count.IPIs > limit {
			u.PlanRow, u.CountedOnly = count, true
			return u, err
		}
	}
	e, err := sim.NewEngine(j)
	if err != nil {
		return u, err
	}
	defer e.Close()
	u.RunRow, err = e.Update(ctx, true)
	switch {
	case err != nil || ctx.Err() != nil:
		return u, errors.Join(err, ctx.Err())
	case u.Violations > 0:
		return u, fmt.Errorf("%s: %d properties violated", j.Config.String(), u.Violations)
	case u.Modelled == nil:
		return u, nil
	}
	for cpu, role := range u.Roles {
		if role == cpus.Isolated {
			u.IsolatedBurst = max(u.IsolatedBurst, u.Counts.Burst[cpu])
		}
	}
	return u, nil
}

// TrapTime is the time that all CPUs together spend in traps: the time that the update has
// stolen from them, without their interrupts. It is not known of updates that leave CPUs
// out, as these catch up later.
func (u *Update) TrapTime() (sum timed.Nanos) {
	handler := timed.Nanos(math.Round(u.Config.Calibration.Costs.Handler))
	for cpu := range u.Roles {
		sum += u.Stolen[cpu]
		for _, n := range u.Counts.Taken[cpu] {
			sum -= timed.Nanos(n) * handler
		}
	}
	return sum
}
