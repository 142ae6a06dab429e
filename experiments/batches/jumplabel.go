// SPDX-License-Identifier: Apache-2.0

package batches

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timeline"
)

// keys says which keys are switched, on which machines.
// Its fields are the flags of jump-label.experiment.
type keys struct {
	Entries   []int
	Machines  []experiments.Machine // all CPUs busy
	Calls     *float64
	Repeat    int
	Published string
}

// JumpLabel asks what batching brought to jump labels: rounds and time of switching a static key one entry after the
// other, and in one batch.
var JumpLabel = experiments.New("batches/jump-label.experiment", switchKeys)

// way is how a key is switched.
type way struct {
	name, protocol string
	buffer         func(entries int) sched.Buffer
	batches        func(entries int) int
}

// One by one is what Linux did until 5.2. A batch has up to 128 entries in
// 5.3 and 5.4, 170 in 5.5 and 256 since 5.6; a bigger key would take several, and has
// a vector of its own size here.
var ways = []way{
	{"one by one", "per-site", func(int) sched.Buffer { return sched.Buffer{Slots: 1} }, func(n int) int { return n }},
	{"batched", "breakpoint", func(n int) sched.Buffer { return sched.Buffer{Slots: max(n, 256)} },
		func(int) int { return 1 }},
}

// keyRow is a key that is switched in some way on a machine.
type keyRow struct {
	way
	Machine  experiments.Machine
	Entries  int
	First    bool // machine
	Counted  sim.PlanRow
	update   sample             // in nanoseconds
	Spread   calibration.Spread // of that mean
	exposed  calibration.Spread // of that of the exposure
	Exposure sample
	traps    sample    // a switch
	Vector   int3.Cost // of searching a batch, every entry once
	BTree    int3.Cost
}

// Modelled is that with its range, as headlines say it.
func (r *keyRow) Modelled() string { return experiments.Modelled(r.Spread) }

// WantRounds is what the formula says.
func (r *keyRow) WantRounds() int { return poke.RoundsPerBatch() * r.batches(r.Entries) }

// sample is a mean with its 95 % interval: 1.96 standard errors.
type sample struct{ Mean, Low, High float64 }

func sampleOf(values []float64) sample {
	mean, sd := stat.MeanStdDev(values, nil)
	half := 0.0
	if len(values) > 1 {
		half = 1.96 * sd / math.Sqrt(float64(len(values)))
	}
	return sample{mean, mean - half, mean + half}
}

// Handler is what the calibration makes of a search, in nanoseconds, without the
// way into the handler and out of it.
func (r *keyRow) Handler() float64 { return r.handlerOf(&r.Machine.Costs) }

func (r *keyRow) handlerOf(c *calibration.Costs) float64 {
	return 2*c.Reference + c.Comparison*r.Vector.Mean()
}

// HandlerRange is how far that may be off.
func (r *keyRow) HandlerRange() calibration.Spread {
	return r.Machine.Spreads(rangeSeed, calibration.Samples, 1, func(c *calibration.Costs, out []float64) {
		out[0] = r.handlerOf(c)
	})[0]
}

// rangeSeed draws the ranges of numbers without an executed update.
const rangeSeed = 1

func switchKeys(ctx context.Context, s *experiments.Study[keys, *keyRow]) (any, error) {
	a := &answer{Study: s}
	a.timeline = timeline.New(&a.events, nil, timelineLimit)
	defer func() { _ = a.timeline.Close() }() // memory takes everything
	all, known, err := read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	a.known = known
	type point struct {
		machine experiments.Machine
		entries int
		way
	}
	var points []point
	for _, m := range s.Config.Machines {
		for _, n := range s.Config.Entries {
			for _, w := range ways {
				points = append(points, point{m, n, w})
			}
		}
	}
	err = experiments.Each(ctx, s, points, func(p point) (*keyRow, error) {
		return a.try(ctx, s.Lab, p.machine, p.entries,
			p.way)
	})
	pairs := a.pairs()
	if len(pairs) > 0 && pairs[0].Fast.First {
		s.Document(results.Document{Name: "jump-label.pftrace", Write: func(w io.Writer) error {
			_, err := w.Write(a.events.Bytes())
			return err
		}})
	}
	return a, cmp.Or(err, experiments.Beside(s, "published", all), experiments.Beside(s, "fit", []pairOf{known}),
		experiments.Beside(s, "handlers", s.Config.searches()), experiments.Beside(s, "pairs", pairs))
}

// timelineLimit bounds the timeline, in bytes: for the published key it takes half a megabyte.
const timelineLimit = 16 << 20

// try switches a key over and over, each time with another seed. The published key's
// first time on the first machine is recorded.
func (a *answer) try(ctx context.Context, lab experiments.Lab, m experiments.Machine, n int, w way) (*keyRow, error) {
	out := &keyRow{way: w, Machine: m, Entries: n, First: m == a.Config.Machines[0]}
	c, err := m.Job(ctx, lab, experiments.Ascending(n))
	if err != nil {
		return nil, err
	}
	c.Protocol, c.Buffer, c.Lookup, c.Calls = w.protocol, w.buffer(n), int3.Vector, a.Config.Calls
	if out.First && n == int(a.known.Slow.Entries) {
		c.Timeline = a.timeline
	}
	var update, exposure, traps []float64
	lab.Kept = nil // no key is switched with the same seed again
	for i := range a.Config.Repeat {
		c.Seed = lab.Seed + uint64(i)
		u, err := modelled.Enable(ctx, lab, c, math.MaxInt)
		if err != nil {
			return nil, err
		}
		out.Counted = u.PlanRow
		if i == 0 {
			out.Spread, out.exposed = u.Modelled.Ranges().Update, u.Modelled.Ranges().Exposure
		}
		c.Timeline = nil
		update, exposure, traps = append(update, float64(u.Modelled.Update)), append(exposure,
			float64(u.Modelled.Exposure)), append(traps, float64(u.Traps))
	}
	out.update, out.Exposure, out.traps = sampleOf(update), sampleOf(exposure), sampleOf(traps)
	out.Spread = out.Spread.Scaled(out.update.Mean / out.Spread.Likely)
	if of := out.exposed.Likely; of > 0 {
		out.exposed = out.exposed.Scaled(out.Exposure.Mean / of)
	}
	searched := int3.Batch{Addrs: c.Table.Addrs()[:n/w.batches(n)]}
	out.Vector, out.BTree = int3.CostOf(int3.Vector, searched), int3.CostOf(int3.BTree, searched)
	return out, nil
}

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[keys, *keyRow]
	known pairOf

	timeline *timeline.Recorder // of the published key, in events
	events   bytes.Buffer
}

// Traps is how many breakpoints are run into batched for each one by one, over the
// calibration's intervals, as a multiple of what it likely is: as many as sites hold
// breakpoints long, for two rounds and the stores of those that are switched together.
func (p *pair) Traps() calibration.Spread {
	m := p.Fast.Machine
	s := m.Spreads(rangeSeed, calibration.Samples, 1, func(c *calibration.Costs, out []float64) {
		rounds := 2 * (c.Round(m.Online-1) + c.Fence)
		out[0] = (rounds + 2*float64(p.Fast.Entries)*c.Store) / (rounds + 2*c.Store)
	})[0]
	return s.Scaled(1 / s.Likely)
}

// known is a published switch.
type known struct{ published.KeyUpdate }

// Searched is how many entries a handler searches where the key takes so many rounds.
func (k known) Searched() int {
	return int(int64(poke.RoundsPerBatch()) * k.Entries / max(k.Rounds, 1))
}

// pairOf is the published pair with times: one by one, and batched; and what their handlers' searches take.
type pairOf struct {
	Slow, Fast         known
	SlowHalf, FastHalf float64 // of the last digit of their times
	One, Many          steps
}

// read reads the published figures, and finds the pair.
func read(file string) (all []known, p pairOf, err error) {
	rows, err := published.JumpLabels.Read(file)
	if err != nil {
		return nil, p, err
	}
	for _, r := range rows {
		k := known{r}
		all = append(all, k)
		if !r.UpdateMS.Known || !r.HandlerNS.Known {
			continue
		}
		if p.Slow.Rounds == 0 || r.Rounds > p.Slow.Rounds {
			p.Slow = k
		}
		if p.Fast.Rounds == 0 || r.Rounds < p.Fast.Rounds {
			p.Fast = k
		}
	}
	if p.Slow.Rounds == p.Fast.Rounds || p.Slow.Entries != p.Fast.Entries || p.Slow.Searched() != 1 || p.Fast.Searched() < 2 {
		return nil, p, errors.New(
			"published figures: want update_ms and int3_handler_ns of one key, switched one entry by one and in one batch",
		)
	}
	p.SlowHalf, p.FastHalf = lastDigit(p.Slow.UpdateMS.Value)/2, lastDigit(p.Fast.UpdateMS.Value)/2
	p.One, p.Many = stepsOf(1), stepsOf(p.Fast.Searched())
	return all, p, nil
}

// lastDigit is the unit of a number's last decimal digit: 1 of 57, 0.1 of 1.4.
func lastDigit(v float64) float64 {
	unit := 1.0
	for range 9 {
		if math.Abs(v/unit-math.Round(v/unit)) < 1e-9 {
			break
		}
		unit /= 10
	}
	return unit
}

// steps are numbers of steps of a search: the levels of a binary search (log2 n), its comparisons on average, or the
// most of them; in a btree too.
type steps struct{ Level, Mean, Deepest, Tree float64 }

// stepsOf counts those among n entries.
func stepsOf(n int) steps {
	b := int3.Batch{Addrs: make([]records.Addr, n)}
	for i := range b.Addrs {
		b.Addrs[i] = records.Addr(16 * (i + 1))
	}
	v := int3.CostOf(int3.Vector, b)
	return steps{math.Log2(float64(n)), v.Mean(), float64(v.Max), int3.CostOf(int3.BTree, b).Mean()}
}

// searched is a handler's search among some entries.
type searched struct {
	Entries int
	Steps   steps
}

// searches are those among the entries that are asked for.
func (c *keys) searches() []searched {
	return spelling.Each(c.Entries, func(n int) searched { return searched{n, stepsOf(n)} })
}

// pair is the published key on a machine, one by one and batched.
type pair struct{ Slow, Fast *keyRow }

// pairs are those of all machines.
func (a *answer) pairs() (out []*pair) {
	for _, m := range a.Config.Machines {
		switched := func(w way) *keyRow {
			return spelling.First(a.Rows, func(r *keyRow) bool {
				return r.Machine == m && r.Entries == int(a.known.Slow.Entries) && r.name == w.name
			})
		}
		if p := (&pair{switched(ways[0]), switched(ways[1])}); p.Slow != nil && p.Fast != nil {
			out = append(out, p)
		}
	}
	return out
}
