// SPDX-License-Identifier: Apache-2.0

// Package buffersize asks whether a bigger vector of patches is better, and for
// whom: rounds, time of the update, breakpoints, traps, stolen time and memory.
package buffersize

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// Config says which sizes are tried on which machines: the flags of buffer-size.experiment.
type Config struct{ modelled.Setting }

//go:embed buffer-size.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Columns: append(ranges, frontColumns()...), Measure: measure,
}).Experiment()

// protocol queues in a vector on every instruction set.
const protocol = "breakpoint"

// row is one size on one machine.
type row struct {
	modelled.Update
	Machine experiments.Machine
	base    *row // the size of 2019 on that machine; nil if there is none, or no time
	first   bool // machine that has one
	split   split
	// dominated names the size that is better, for each front; "" where none is.
	dominated [numFronts]string
}

// RoundsShare and UpdateShare are rounds and time over those of the size of 2019; the time is
// empty where there is none.
func (r *row) RoundsShare() float64 { return float64(r.Rounds) / float64(r.base.Rounds) }
func (r *row) UpdateShare() any {
	if !r.timed() {
		return results.Empty
	}
	return float64(r.Modelled.Update) / float64(r.base.Modelled.Update)
}

// timed tells whether the update was not only counted.
func (r *row) timed() bool { return r.Modelled != nil }

// CPUs are the machine's, by role.
func (r *row) CPUs() string { return cpus.FormatRoles(r.Roles) }

// trap is the mean time of a trap, in nanoseconds.
func (r *row) trap() float64 { return float64(r.TrapTime()) / float64(r.Traps) }

// ATrap is that for people; "-" where there was none.
func (r *row) ATrap() string {
	if r.Traps == 0 {
		return "-"
	}
	return results.Fixed(0, r.trap())
}

// UpdateMS, ExposureMS and StolenMS, the mean of a CPU, are modelled times in milliseconds,
// with their ranges.
func (r *row) UpdateMS() string   { return within(r.Modelled.Ranges().Update) }
func (r *row) ExposureMS() string { return within(r.Modelled.Ranges().Exposure) }
func (r *row) StolenMS() string   { return within(r.Modelled.Ranges().Stolen) }

func within(s calibration.Spread) string {
	s = s.Scaled(1e-6)
	return fmt.Sprintf("%.4g (%.3g to %.3g)", s.Likely, s.Low, s.High)
}

// TrapMS is the time of all traps, in milliseconds: it goes as what is stolen.
func (r *row) TrapMS() string { return ms(r.TrapTime()) }

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"update_formula_ns": func(r *row) any { return r.split.update(r.Patches, r.Flushes) },
	"rounds_share":      func(r *row) any { return r.split.share(r.Patches, r.Flushes) },
	"trap_mean_ns":      func(r *row) any { return results.If(r.Traps > 0, r.trap()) },
}

// ranges are how far modelled times may be off.
var ranges = results.Of(sim.RangeColumns, func(r *row) *sim.Ranges { return r.Modelled.Ranges() }).When((*row).timed)

// frontColumns name, for each front, the size that dominates.
func frontColumns() (out results.Columns[*row]) {
	for i, f := range fronts {
		out = append(out, results.Col[*row]{
			Name: f.column, Detail: f.detail, Doc: "size that is no worse in " + f.name + ", and better in one of them",
			Cell: func(r *row) any { return results.OrEmpty(r.dominated[i]) },
		})
	}
	return out
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Buffers)
	a := &answer{s}
	for _, m := range c.Machines {
		rows, err := c.sizes(ctx, s.Lab, m)
		judge(rows)
		first := len(rows) > 0 && rows[0].base != nil && !slices.ContainsFunc(s.Rows, func(r *row) bool { return r.first })
		for _, r := range rows {
			r.first = first
			if err := s.Add(r); err != nil {
				return a.findings(), err
			}
		}
		if err != nil {
			return a.findings(), err
		}
	}
	return a.findings(), nil
}

// sizes goes through the sizes on one machine, and returns those that were finished.
func (s *Config) sizes(ctx context.Context, lab experiments.Lab, m experiments.Machine) (rows []*row, err error) {
	c, err := s.Engine(ctx, lab, m)
	if err != nil {
		return nil, err
	}
	c.Protocol = protocol
	for _, c.Buffer = range s.Buffers {
		out := &row{Machine: m}
		if out.split, err = splitOf(c); err != nil {
			return rows, err
		}
		if out.Update, err = modelled.Enable(ctx, lab, c, s.Limit); err != nil {
			return rows, err
		}
		rows = append(rows, out)
	}
	return rows, nil
}

// front is costs of which less is better. A size is on it unless another one is
// no worse in all of them and better in one.
type front struct {
	name   string // the costs, for people
	column string
	detail bool
	costs  []func(*row) float64
}

// The costs.
func interrupts(r *row) float64 { return float64(r.IPIsPerCPU) }
func exposure(r *row) float64   { return float64(r.Modelled.Exposure) }
func memory(r *row) float64     { return float64(r.BufferBytes) }
func updateTime(r *row) float64 { return float64(r.Modelled.Update) }
func stolen(r *row) float64     { return r.Modelled.StolenMean }

const numFronts = 3

// fronts are what somebody may look at: a CPU that must not be interrupted, an
// update that must be over, or work that must go on.
var fronts = [numFronts]front{
	{"interrupts, exposure and memory", "dominated_by", false, []func(*row) float64{interrupts, exposure, memory}},
	{"time of the update, exposure and memory", "dominated_update_by", true, []func(*row) float64{updateTime, exposure,
		memory}},
	{"stolen time, exposure and memory", "dominated_stolen_by", true, []func(*row) float64{stolen, exposure, memory}},
}

// dominates tells whether a is no worse than b in all costs, and better in one.
func (f *front) dominates(a, b *row) bool {
	better := false
	for _, cost := range f.costs {
		x, y := cost(a), cost(b)
		if x > y {
			return false
		}
		better = better || x < y
	}
	return better
}

// judge holds each size against the one of 2019, and says of each size of one machine which one dominates it, if any: the
// first of those that no other one dominates.
func judge(rows []*row) {
	base := with(rows, thread[0])
	for _, r := range rows {
		r.base = base
	}
	for i := range fronts {
		f := &fronts[i]
		for _, r := range rows {
			if by := f.best(rows, r); by != nil {
				r.dominated[i] = by.Buffer.String()
			}
		}
	}
}

// best is a size on the front that dominates another; nil if none does.
func (f *front) best(rows []*row, of *row) (by *row) {
	if of.Modelled == nil {
		return nil
	}
	for _, r := range rows {
		if r.Modelled != nil && f.dominates(r, of) && (by == nil || f.dominates(r, by)) {
			by = r
		}
	}
	return by
}

// split is an update in two parts that grow with different things: what is done for
// each site, whatever batch it is in, and what is done for each batch, however many
// sites are in it. Both in nanoseconds, on average.
type split struct{ site, batch float64 }

// splitOf adds up what the steps of a plan take. A round takes Costs.Round, on
// average; that handlers have to be waited for now and then is left out.
func splitOf(c sim.Config) (s split, err error) {
	j, err := sim.NewJob(c)
	if err != nil {
		return s, err
	}
	plan, err := j.Plan()
	if err != nil {
		return s, err
	}
	costs, batches, sites := &c.Calibration.Costs, 0, 0
	round := costs.Round(c.Online() - 1)
	for _, st := range plan {
		n := float64(st.To - st.From)
		switch st.Op {
		case poke.Verify:
			s.site += n * costs.Verify
		case poke.Write:
			s.site += n * store(costs, st.Part)
		case poke.Publish:
			batches++
			sites += int(st.To - st.From)
			s.site += n * costs.Publish
		case poke.Fence:
			s.batch += costs.Fence
		case poke.Sync:
			s.batch += round + costs.Fence
		case poke.Unpublish:
			s.batch += costs.Reference
		}
	}
	return split{s.site / float64(sites), s.batch / float64(batches)}, nil
}

func store(costs *calibration.Costs, part poke.Part) float64 {
	if part == poke.Literal {
		return costs.StoreLiteral
	}
	return costs.Store
}

// splitAt is the split of a row's machine with another number of CPUs, all of which
// are online: only its rounds differ.
func (r *row) splitAt(online int) split {
	costs := &r.Machine.Costs
	return split{r.split.site, r.split.batch + float64(poke.RoundsPerBatch())*(costs.Round(online-1)-costs.Round(r.Online()-1))}
}

// update is the time of an update of so many sites in so many batches.
func (s split) update(sites, batches int) float64 {
	return s.site*float64(sites) + s.batch*float64(batches)
}

// share is the share of the rounds in it.
func (s split) share(sites, batches int) float64 {
	return s.batch * float64(batches) / s.update(sites, batches)
}

// crossover is the size at which rounds take as long as stores: with smaller vectors
// rounds dominate the update, with bigger ones stores do.
func (s split) crossover() float64 { return s.batch / s.site }

// faster is how many times faster the update of many sites is with vectors of to
// slots than with vectors of from.
func (s split) faster(from, to float64) float64 {
	x := s.crossover()
	return (1 + x/from) / (1 + x/to)
}

// enough is the size from which ten times the slots are not visible: where faster
// is as much as visible.
func (s split) enough() float64 { return s.crossover() * (1 - visible/10) / (visible - 1) }

// fit finds both parts from updates of one machine, as the timed engine timed them,
// without looking at the costs: a line through time against batches. The rounds'
// times add up, so that the variance grows with the batches, and weights are 1 over
// them. It needs two sizes.
func fit(rows []*row) (s split, ok bool) {
	var x, y, w []float64
	for _, r := range rows {
		if r.Modelled == nil {
			continue
		}
		n := float64(r.Patches)
		x, y = append(x, float64(r.Flushes)/n), append(y, float64(r.Modelled.Update)/n)
		w = append(w, 1/float64(r.Flushes))
	}
	if len(x) < 2 || x[0] == x[len(x)-1] {
		return s, false
	}
	s.site, s.batch = stat.LinearRegression(x, y, w, false)
	return s, s.site > 0
}
