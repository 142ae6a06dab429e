// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"cmp"
	"sort"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/experiments/grid"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/sim"
)

// BufferSize asks whether a bigger vector of patches is better, and for whom: rounds, time of the update, breakpoints,
// traps, stolen time and memory.
var BufferSize = grid.Must("buffer-size.experiment", text("buffer-size.experiment"), grid.More{Facts: facts, Compute: crossovers})

// facts are the two parts of an update, and what one store takes.
var facts = results.Columns[*grid.Measured]{
	{Column: results.Column{Name: "site_ns", Kind: results.Number}, Cell: partOf(func(s split) float64 { return s.Site })},
	{Column: results.Column{Name: "batch_ns", Kind: results.Number}, Cell: partOf(func(s split) float64 { return s.Batch })},
	{Column: results.Column{Name: "store_ns", Kind: results.Number},
		Cell: func(m *grid.Measured) any { return m.Machine.Costs.Store }},
}

func partOf(part func(split) float64) func(*grid.Measured) any {
	return func(m *grid.Measured) any {
		s, err := splitOf(m.Point.Config)
		if err != nil {
			return err // no cell: the row is refused
		}
		return part(s)
	}
}

// split is an update in two parts: the time for each site, in any batch, and the time for
// each batch, with any number of sites. Both in nanoseconds, on average.
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
			if st.Part == poke.Literal {
				s.Site += n * costs.StoreLiteral
			} else {
				s.Site += n * costs.Store
			}
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

// Crossover is the size at which rounds take as long as stores: with smaller vectors
// rounds dominate the update, with bigger ones stores do.
func (s split) Crossover() float64 { return s.Batch / s.Site }

// mostCPUs is how far the lines of crossovers go, thread the vector of 2019.
const mostCPUs, thread = 4096, 170

// machine is what the rows of one machine say.
type machine struct {
	Machine      experiments.Machine
	Own          *float64
	DominateFrom int
}

// point is where stores begin to dominate on a machine of so many CPUs.
type point struct {
	Name  string
	CPUs  int
	Slots float64
	Own   bool // as the row's updates have it
}

// crossovers finds the crossovers of each machine: a line over all numbers of CPUs, and its own.
func crossovers(r *grid.Report) error {
	var machines []machine
	var points []point
	for _, m := range r.Config.Machines {
		rows := spelling.Where(r.Table(), func(row form.Row) bool { return row["machine"] == m.String() })
		if len(rows) == 0 {
			continue
		}
		costs, online := &m.Costs, int(rows[0]["online"].(int64))
		// Only its rounds differ with another number of CPUs, all of which are online.
		at := func(cpus int) float64 {
			more := float64(poke.RoundsPerBatch()) * (costs.Round(cpus-1) - costs.Round(online-1))
			return split{rows[0]["site_ns"].(float64), rows[0]["batch_ns"].(float64) + more}.Crossover()
		}
		for n, last := 2.0, 0; n <= mostCPUs; n *= 1.25 {
			if whole := int(n); whole > last {
				points, last = append(points, point{m.Name, whole, at(whole), false}), whole
			}
		}
		of := machine{m, nil, sort.Search(mostCPUs, func(n int) bool { return n >= 2 && at(n) >= thread })}
		if own := fitted(rows); own != nil {
			x := own.Crossover()
			of.Own, points = &x, append(points, point{m.Name, online, x, true})
		}
		machines = append(machines, of)
	}
	return cmp.Or(experiments.Beside(r.Study, "machines", machines), experiments.Beside(r.Study, "crossovers", points))
}

// fitted finds both parts from updates of one machine, nil of too few, as the timed engine timed them,
// without looking at the costs: a line through time against batches. The rounds'
// times add up, so that the variance grows with the batches, and weights are 1 over
// them. It needs two sizes.
func fitted(rows form.Rows) *split {
	var x, y, w []float64
	for _, r := range rows {
		update, timed := r["update_ns"].(int64)
		if !timed {
			continue
		}
		n, batches := float64(r["patches"].(int64)), float64(r["flushes"].(int64))
		x, y, w = append(x, batches/n), append(y, float64(update)/n), append(w, 1/batches)
	}
	if len(x) < 2 || x[0] == x[len(x)-1] {
		return nil
	}
	if site, batch := fit.LeastSquares(x, y, w); site > 0 {
		return &split{site, batch}
	}
	return nil
}
