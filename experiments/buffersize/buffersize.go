// SPDX-License-Identifier: Apache-2.0

// Package buffersize asks whether a bigger vector of patches is better, and for
// whom: rounds, time of the update, breakpoints, traps, stolen time and memory.
package buffersize

import (
	"cmp"
	"context"
	_ "embed"
	"slices"
	"sort"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says which sizes are tried on which machines: the flags of buffer-size.experiment.
type Config struct{ modelled.Setting }

//go:embed buffer-size.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Columns: append(ranges, frontColumns()...), Measure: measure,
}).Experiment()

// protocol queues in a vector on every instruction set.
const protocol = "breakpoint"

// row is one size on one machine.
type row struct {
	modelled.Update
	Machine experiments.Machine
	Base    *row // the size of 2019 on that machine; nil if there is none, or no time
	First   bool // machine that has one
	Bigger  *row // about ten times the size; nil if it is none of interest, or one of both was not timed
	Labels  bool // the machine's points say which size they are
	Split   split
	Own     *split // as the machine's updates have it, without looking at costs; nil of too few sizes
	// dominated names the size that is better, for each front; "" where none is.
	dominated [numFronts]string
}

// timed tells whether the update was not only counted.
func (r *row) timed() bool { return r.Modelled != nil }

// CPUs are the machine's, by role.
func (r *row) CPUs() string { return cpus.FormatRoles(r.Roles) }

// Slots is where a size stands on an axis.
func (r *row) Slots() float64 {
	if r.Buffer == sched.Dynamic {
		return float64(r.Patches)
	}
	return float64(r.Buffer.Slots)
}

// mostCPUs is how far the lines of crossovers go.
const mostCPUs = 4096

// DominateFrom is from how many CPUs on rounds dominate the size of 2019.
func (r *row) DominateFrom() int {
	return sort.Search(mostCPUs, func(n int) bool { return n >= 2 && r.splitAt(n).Crossover() >= thread })
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

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Buffers)
	dearest := slices.MaxFunc(c.Machines, func(a, b experiments.Machine) int { return cmp.Compare(a.Costs.Store, b.Costs.Store) })
	var points []point
	err := func() error {
		for _, m := range c.Machines {
			rows, err := c.sizes(ctx, s.Lab, m)
			judge(rows)
			first := len(rows) > 0 && rows[0].Base != nil && !slices.ContainsFunc(s.Rows, func(r *row) bool { return r.First })
			for _, r := range rows {
				r.First, r.Labels = first, m == dearest
				if err := s.Add(r); err != nil {
					return err
				}
			}
			if len(rows) > 0 {
				points = append(points, rows[0].crossovers()...)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}()
	return s, cmp.Or(err, experiments.Beside(s, "crossovers", points))
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
		if out.Split, err = splitOf(c); err != nil {
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

// thread is what the claims are about: the vector of 2019, and ten times as many.
const thread = 170

// tenfold are sizes that are about ten times apart.
var tenfold = map[int]int{16: thread, thread: 1700, 1700: 16384}

// judge holds each size of one machine against the one of 2019 and against a bigger one, and says which one dominates it,
// if any: the first of those that no other one dominates.
func judge(rows []*row) {
	with := func(slots int) *row {
		return experiments.First(rows, func(r *row) bool { return r.timed() && slots > 0 && r.Buffer.Slots == slots })
	}
	base, own := with(thread), fitted(rows)
	for _, r := range rows {
		r.Base, r.Own = base, own
		if r.timed() {
			r.Bigger = with(tenfold[r.Buffer.Slots])
		}
		for i := range fronts {
			if by := fronts[i].best(rows, r); by != nil {
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
type split struct{ Site, Batch float64 }

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
			s.Site += n * costs.Verify
		case poke.Write:
			s.Site += n * store(costs, st.Part)
		case poke.Publish:
			batches++
			sites += int(st.To - st.From)
			s.Site += n * costs.Publish
		case poke.Fence:
			s.Batch += costs.Fence
		case poke.Sync:
			s.Batch += round + costs.Fence
		case poke.Unpublish:
			s.Batch += costs.Reference
		}
	}
	return split{s.Site / float64(sites), s.Batch / float64(batches)}, nil
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
	return split{r.Split.Site, r.Split.Batch + float64(poke.RoundsPerBatch())*(costs.Round(online-1)-costs.Round(r.Online()-1))}
}

// Crossover is the size at which rounds take as long as stores: with smaller vectors
// rounds dominate the update, with bigger ones stores do.
func (s split) Crossover() float64 { return s.Batch / s.Site }

// point is where stores begin to dominate on a machine of so many CPUs.
type point struct {
	Name  string
	CPUs  int
	Slots float64
	Own   bool // as the row's updates have it
}

// crossovers are a line over all numbers of CPUs, and the machine's own.
func (r *row) crossovers() (out []point) {
	for n, last := 2.0, 0; n <= mostCPUs; n *= 1.25 {
		if whole := int(n); whole > last {
			out, last = append(out, point{r.Machine.Name, whole, r.splitAt(whole).Crossover(), false}), whole
		}
	}
	if r.Own != nil {
		out = append(out, point{r.Machine.Name, r.Online(), r.Own.Crossover(), true})
	}
	return out
}

// fitted finds both parts from updates of one machine, nil of too few, as the timed engine timed them,
// without looking at the costs: a line through time against batches. The rounds'
// times add up, so that the variance grows with the batches, and weights are 1 over
// them. It needs two sizes.
func fitted(rows []*row) *split {
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
		return nil
	}
	if site, batch := fit.LeastSquares(x, y, w); site > 0 {
		return &split{site, batch}
	}
	return nil
}
