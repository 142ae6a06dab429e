// Package jumplabel asks what batching brought to jump labels: rounds and time of
// switching a static key one entry after the other, and in one batch.
package jumplabel

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/timeline"
)

const (
	name     = "jump-label"
	question = "What did batching bring to jump labels? How many rounds and how much time does switching a static key take one entry after the other, " +
		"and in one batch, and what does the search among the batch's entries cost the breakpoint's handler?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "what did batching bring? a static key's rounds, time and handler, one by one and batched",
	About: "jump-label switches static keys of some numbers of entries one entry after the other and in one\n" +
		"batch. It counts rounds, fits the cost of a round and of an entry to the times published in 2019,\n" +
		"runs the same on the timed engine with the costs of a machine, and holds what a handler's search\n" +
		"costs against exact numbers of comparisons. Rows say what was fitted to and what is a prediction.\n" +
		"jump-label.pftrace shows the published key being switched both ways, for ui.perfetto.dev.",
	Examples: []string{
		"jump-label --out jump-label",
		"jump-label --entries 4,56 --calibration jump-label-24,refcount-480 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{calls: 100_000}
		experiments.Register(f, experiments.Counts(&r.entries, "entries", "1,2,4,8,16,32,56,64,128,170,256", "`list` of numbers of entries that a key has", 1, 1<<16))
		experiments.Register(f, experiments.Machines(&r.machines, fitted))
		f.Float64Var(&r.calls, "calls", 100_000, "calls a second of the key's sites on each CPU, all of them together")
		f.IntVar(&r.repeat, "repeat", 400, "`times` that each key is switched on the timed engine: one takes what the slowest CPU of each round takes, which varies")
		f.StringVar(&r.published, "published", "", "`file` with published times in place of those that come with the program")
		return r.run
	},
}.Experiment()

// fitted is the calibration whose round and store were fitted to the published pair:
// for that machine those rows are no prediction.
const fitted = "jump-label-24"

// request is what the flags ask for.
type request struct {
	entries   []int
	machines  []experiments.Calibrated
	calls     float64
	repeat    int
	published string
}

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
	{"batched", "breakpoint", func(n int) sched.Buffer { return sched.Buffer{Slots: max(n, 256)} }, func(int) int { return 1 }},
}

// row is a key that is switched in some way on a machine.
type row struct {
	way
	machine  experiments.Calibrated
	entries  int
	counted  sim.PlanRow
	update   sample // in nanoseconds
	exposure sample
	traps    sample // a switch
	facts    *facts
	vector   int3.Cost // of searching a batch, every entry once
	btree    int3.Cost
}

// sample is a mean with its 95 % interval: 1.96 standard errors.
type sample struct{ mean, low, high float64 }

func sampleOf(values []float64) sample {
	mean, sd := stat.MeanStdDev(values, nil)
	half := 0.0
	if len(values) > 1 {
		half = 1.96 * sd / math.Sqrt(float64(len(values)))
	}
	return sample{mean, mean - half, mean + half}
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "calibration", Doc: "machine that times are modelled of"},
		{Name: "cpus", Detail: true, Doc: "its CPUs, all busy"},
		{Name: "entries", Doc: "sites of the static key"},
		{Name: "way", Doc: "how they are switched"},
		{Name: "protocol", Detail: true, Doc: "what is compiled"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "rounds_published", Doc: "what the series of 2019 says"},
		{Name: "update_fit_ns", Detail: true, Doc: "rounds and entries as fitted to the two published times"},
		{Name: "update_ns", Doc: "mean time of switching, modelled by the timed engine"},
		{Name: "update_low_ns", Detail: true, Doc: "lower end of the 95 % interval of that mean"},
		{Name: "update_high_ns", Detail: true, Doc: "and its upper end"},
		{Name: "update_published_ns", Doc: "what the series of 2019 says"},
		{Name: "error_percent", Doc: "by how much the modelled time is off"},
		{Name: "basis", Doc: "fitted: the calibration's costs come from that figure; prediction: they do not"},
		{Name: "exposure_ns", Detail: true, Doc: "mean time that a site held a breakpoint, modelled"},
		{Name: "traps", Doc: "mean number of breakpoints run into while one key is switched"},
		{Name: "lookup_mean", Doc: "comparisons until the handler finds an entry in the sorted vector, mean over all entries"},
		{Name: "lookup_max", Detail: true, Doc: "and the most"},
		{Name: "lookup_btree_mean", Detail: true, Doc: "the same in a btree"},
		{Name: "handler_ns", Doc: "handler with that mean: its references and comparisons as the calibration has them, modelled"},
		{Name: "handler_published_ns", Doc: "what the series of 2019 says"},
	}}
}

func (r *row) cells() []any {
	figure := func(f published.Figure, scale float64) any {
		if !f.Known {
			return results.Empty
		}
		return f.Value * scale
	}
	known := r.facts.of(r.entries, r.counted.Rounds)
	rounds, off := any(results.Empty), any(results.Empty)
	if known.Rounds > 0 {
		rounds = known.Rounds
	}
	if known.UpdateMS.Known {
		off = 100 * (r.update.mean/(known.UpdateMS.Value*1e6) - 1)
	}
	return []any{
		r.machine.Name, r.machine.Online, r.entries, r.name, r.protocol, r.counted.Rounds, rounds,
		r.facts.fit.update(r.entries, r.counted.Rounds), r.update.mean, r.update.low, r.update.high, figure(known.UpdateMS, 1e6), off, r.basis(),
		r.exposure.mean, r.traps.mean, r.vector.Mean(), r.vector.Max, r.btree.Mean(), r.handler(), figure(known.HandlerNS, 1),
	}
}

// basis says whether the row's time is one that the calibration was fitted to.
func (r *row) basis() string {
	if r.machine.String() == fitted && r.facts.of(r.entries, r.counted.Rounds).UpdateMS.Known {
		return "fitted"
	}
	return "prediction"
}

// handler is what the calibration makes of a search, in nanoseconds, without the
// way into the handler and out of it.
func (r *row) handler() float64 {
	c := &r.machine.Costs
	return 2*c.Reference + c.Comparison*r.vector.Mean()
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	if r.repeat < 1 {
		return nil, fmt.Errorf("--repeat %d: want 1 or more", r.repeat)
	}
	a := &answer{request: r}
	a.timeline = timeline.New(&a.events, nil, timelineLimit)
	defer func() { _ = a.timeline.Close() }() // memory takes everything
	var err error
	if a.facts, err = read(r.published); err != nil {
		return nil, err
	}
	for _, m := range r.machines {
		for _, n := range r.entries {
			for _, w := range ways {
				row, err := a.try(ctx, lab, m, n, w)
				if err != nil {
					return a.answer(), err
				}
				a.rows = append(a.rows, row)
				if err := lab.Add(row.cells()...); err != nil {
					return a.answer(), err
				}
			}
		}
	}
	return a.answer(), nil
}

// timelineLimit bounds the timeline, in bytes: for the published key it takes half a megabyte.
const timelineLimit = 16 << 20

// try switches a key over and over, each time with another seed. The published key's
// first time on the first machine is recorded.
func (a *answer) try(ctx context.Context, lab *experiments.Lab, m experiments.Calibrated, n int, w way) (*row, error) {
	out := &row{way: w, machine: m, entries: n, facts: a.facts}
	c := sim.Config{
		Protocol: w.protocol, Buffer: w.buffer(n), Lookup: int3.Vector, Roles: m.Busy(),
		Calibration: m.Calibration, Calls: a.calls, Entries: -1,
	}
	if m == a.machines[0] && n == int(a.facts.slow.Entries) {
		c.Timeline = a.timeline
	}
	var err error
	if c.Arch, err = m.ISA(); err != nil {
		return nil, err
	}
	if c.Table, err = records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", n), records.Options{}); err != nil {
		return nil, err
	}
	var update, exposure, traps []float64
	for i := range a.repeat {
		c.Seed = lab.Seed + uint64(i)
		u, err := modelled.Enable(ctx, *lab, c, math.MaxInt)
		if err != nil {
			return nil, err
		}
		if u.Violations > 0 {
			return nil, fmt.Errorf("%s: %d properties violated", c.String(), u.Violations)
		}
		out.counted = u.PlanRow
		c.Timeline = nil
		update, exposure, traps = append(update, float64(u.Modelled.Update)), append(exposure, float64(u.Modelled.Exposure)), append(traps, float64(u.Traps))
	}
	out.update, out.exposure, out.traps = sampleOf(update), sampleOf(exposure), sampleOf(traps)
	searched := int3.Batch{Addrs: c.Table.Addrs()[:n/w.batches(n)]}
	out.vector, out.btree = int3.NewCoster(int3.Vector).Of(searched), int3.NewCoster(int3.BTree).Of(searched)
	return out, nil
}
