// SPDX-License-Identifier: Apache-2.0

package buffersize

import (
	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim"
)

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
