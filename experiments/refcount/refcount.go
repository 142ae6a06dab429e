// SPDX-License-Identifier: Apache-2.0

// Package refcount asks why one reference count, shared by the breakpoint handlers of
// all CPUs, cost seconds on a machine of 480.
package refcount

import (
	"context"
	"math"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/sched"
)

// Config says which updates are carried out: every combination of its lists.
// Its fields are the flags of refcount.experiment.
type Config struct {
	Machines  []experiments.Machine // all CPUs busy
	Entries   []int                 // patches in the batch
	Refs      []int3.Refs
	OutOfTurn []float64
	Calls     *float64
	Published string
}

// Experiment is the question.
var Experiment = experiments.New("refcount/refcount.experiment", measure)

// publishedEntries is the size of the batch whose functions are the programs that the
// published load runs, 50 million a second on 480 CPUs (4334336e769b).
const publishedEntries = 164

// point is what one update is asked about.
type point struct {
	Machine   experiments.Machine
	Entries   int
	Refs      int3.Refs
	OutOfTurn float64 // 0 but for a shared counter
}

func (p *point) Shared() bool { return p.Refs == int3.SharedRef }

// row is one update.
type row struct {
	point
	modelled.Update
	Calls     float64            // of what is patched, a second and CPU
	Spread    calibration.Spread // of its time
	Published published.Refcount // Entries is 0 where there is none
}

// CPUs is how many there are.
func (r *row) CPUs() int { return len(r.Roles) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	figures, err := published.Refcounts.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, s.Config.points(), func(p point) (*row, error) {
		r := &row{point: p}
		r.find(figures)
		return r, r.measure(ctx, &s.Config, s.Lab)
	})
	return s, err
}

// points are all combinations, machine by machine.
func (c *Config) points() (out []point) {
	for _, m := range c.Machines {
		for _, n := range c.Entries {
			for _, refs := range c.Refs {
				for _, share := range c.shares(refs) {
					out = append(out, point{m, n, refs, share})
				}
			}
		}
	}
	return out
}

// shares are the orders of waiting that there are: one where nobody waits.
func (c *Config) shares(refs int3.Refs) []float64 {
	if refs != int3.SharedRef {
		return []float64{0}
	}
	return c.OutOfTurn
}

// measure carries the row's update out.
func (r *row) measure(ctx context.Context, c *Config, lab experiments.Lab) (err error) {
	each := func(k *calibration.Calibration) float64 {
		if c.Calls != nil {
			return *c.Calls
		}
		return k.Costs.Calls / publishedEntries
	}
	r.Calls = each(r.Machine.Calibration) * float64(r.Entries)
	if r.Update, err = r.enable(ctx, lab, r.Machine.Calibration, r.Calls); err != nil {
		return err
	}
	r.Spread = r.Modelled.Ranges().Update
	if r.Published.Entries == 0 || !r.Shared() {
		return nil
	}
	// Handlers wait for one line, and another run says best how long.
	for end, to := range map[calibration.End]*float64{calibration.Short: &r.Spread.Low, calibration.Long: &r.Spread.High} {
		k := r.Machine.At(end)
		u, err := r.enable(ctx, lab, k, each(k)*float64(r.Entries))
		if err != nil {
			return err
		}
		*to = float64(u.Modelled.Update)
	}
	return nil
}

// enable is the row's update on a machine with some costs, and so many calls.
func (r *row) enable(ctx context.Context, lab experiments.Lab, k *calibration.Calibration,
	calls float64) (u modelled.Update, err error) {
	c, err := r.Machine.Job(ctx, lab, experiments.Ascending(r.Entries))
	if err != nil {
		return u, err
	}
	c.Protocol, c.Buffer, c.Lookup, c.Refs = "breakpoint", sched.Dynamic, int3.Vector, r.Refs
	c.Calibration, c.Calls, c.OutOfTurn = k, &calls, r.OutOfTurn
	return modelled.Enable(ctx, lab, c, math.MaxInt)
}

// find finds what was published of such an update.
func (r *row) find(figures []published.Refcount) {
	for _, f := range figures {
		if strings.HasPrefix(f.Measurement, "shared") == r.Shared() && int(f.Entries) == r.Entries && f.UpdateUS.Known &&
			int(f.Threads) == r.Machine.CPUs && r.Machine.CPUs == r.Machine.Online {
			r.Published = f
		}
	}
}

// Time is the update's, with its range, as a headline says it.
func (r *row) Time() string { return experiments.Modelled(r.Spread) }
