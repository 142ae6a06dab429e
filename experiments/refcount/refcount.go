// SPDX-License-Identifier: Apache-2.0

// Package refcount asks why one reference count, shared by the breakpoint handlers of
// all CPUs, cost seconds on a machine of 480.
package refcount

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
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

//go:embed refcount.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

var shares = experiments.Number("shares above 0, to 1: in strict order a few CPUs can keep the others out for minutes",
	func(v float64) bool { return v > 0 && v <= 1 })

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.List(&c.OutOfTurn, "out-of-turn", "0.001,0.01,1",
			"`list` of shares of visits of the cache line in which the one "+
				"that has waited longest changes places with any of those that wait: near 0 serves in turn, 1 draws lots", shares),
	}
}

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

func (p *point) shared() bool { return p.Refs == int3.SharedRef }

// row is one update.
type row struct {
	point
	modelled.Update
	Calls     float64            // of what is patched, a second and CPU
	spread    calibration.Spread // of its time
	published published.Refcount // Entries is 0 where there is none
}

// Ratio is how many times the published figure the model's is; 0 where there is none.
func (r *row) Ratio() float64 {
	if r.published.Entries == 0 {
		return 0
	}
	return r.UpdateNS() / r.PublishedNS()
}

// UpdateNS is the time of the update, modelled.
func (r *row) UpdateNS() float64 { return float64(r.Modelled.Update) }

// Range is the time with its range, as people read it.
func (r *row) Range() string { return experiments.Ranged(r.spread) }

// PublishedNS is the time that was published.
func (r *row) PublishedNS() float64 { return r.published.UpdateUS.Value * 1000 }

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"cpus":            func(r *row) any { return len(r.Roles) },
	"out_of_turn":     func(r *row) any { return results.If(r.shared(), r.OutOfTurn) },
	"update_hangs_on": func(r *row) any { return results.OrEmpty(r.spread.On()) },
	"published_ns":    func(r *row) any { return results.If(r.Ratio() > 0, r.PublishedNS()) },
	"ratio":           func(r *row) any { return results.If(r.Ratio() > 0, r.Ratio()) },
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	figures, err := published.Refcounts.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, s.Config.points(), func(p point) (*row, error) {
		r := &row{point: p}
		r.find(figures)
		return r, r.measure(ctx, &s.Config, s.Lab)
	})
	a := &answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}, err
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
	r.spread = r.Modelled.Ranges().Update
	if r.published.Entries == 0 || !r.shared() {
		return nil
	}
	// Handlers wait for one line, and another run says best how long.
	for end, to := range map[calibration.End]*float64{calibration.Short: &r.spread.Low, calibration.Long: &r.spread.High} {
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
	arch, err := r.Machine.ISA()
	if err != nil {
		return u, err
	}
	t, err := records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", r.Entries), records.Options{})
	if err != nil {
		return u, err
	}
	return modelled.Enable(ctx, lab, sim.Config{
		Arch: arch, Protocol: "breakpoint", Buffer: sched.Dynamic, Lookup: int3.Vector, Refs: r.Refs, Table: t,
		Roles: r.Machine.Busy(), Seed: lab.Seed, Calibration: k, Calls: &calls, OutOfTurn: r.OutOfTurn,
	}, math.MaxInt)
}

// find finds what was published of such an update.
func (r *row) find(figures []published.Refcount) {
	for _, f := range figures {
		if strings.HasPrefix(f.Measurement, "shared") == r.shared() && int(f.Entries) == r.Entries && f.UpdateUS.Known &&
			int(f.Threads) == r.Machine.CPUs && r.Machine.CPUs == r.Machine.Online {
			r.published = f
		}
	}
}

// answer is what the report says of the updates that were carried out.
type answer struct {
	*experiments.Study[Config, *row]
}

// What says which update it is.
func (r *row) What() string {
	counter := map[int3.Refs]string{int3.SharedRef: "shared counter", int3.PerCPU: "counter for each CPU"}[r.Refs]
	if counter == "" {
		counter = "no counter"
	}
	s := fmt.Sprintf("%s, %d entries, %d CPUs", counter, r.Entries, len(r.Roles))
	if r.shared() {
		s += ", " + results.Percent(r.OutOfTurn) + " out of turn"
	}
	return s
}

// Visit is the time of one visit of the counter's line, in nanoseconds.
func (r *row) Visit() float64 {
	return math.Floor(r.Machine.Costs.LineTransfer + r.Machine.Costs.Reference + 0.5)
}

// CallsRounded is the calls a second and CPU, without decimals.
func (r *row) CallsRounded() float64 { return math.Floor(r.Calls + 0.5) }

// Onset is from how many CPUs on handlers come faster than the line serves them.
func (r *row) Onset() float64 {
	c := r.Machine.Costs
	return 1e9 / (2 * (c.LineTransfer + c.Reference) * r.Calls)
}

// TransferThatFits is how long a transfer of the line would have to take for the
// published figure, in nanoseconds.
func (r *row) TransferThatFits() float64 {
	c := r.Machine.Costs
	return (c.LineTransfer+c.Reference)/r.Ratio() - c.Reference
}

// Knew is one text of an update that the calibration was fitted to, another of one
// that it was not.
func (r *row) Knew(fitted, predicted string) string {
	if r.shared() {
		return predicted
	}
	return fitted
}

// PerRound is the update's time for each of its rounds, in nanoseconds.
func (r *row) PerRound() float64 { return r.UpdateNS() / float64(max(r.Rounds, 1)) }

// Time is the update's, with its range.
func (r *row) Time() calibration.Spread { return r.spread }

// like tells whether rows are of the same batch on the same machine.
func (r *row) like(o *row) bool {
	return r.Machine.String() == o.Machine.String() && r.Entries == o.Entries
}

// Worst is the row with a shared counter that takes longest; nil if there is none.
func (a answer) Worst() (worst *row) {
	for _, r := range a.Rows {
		if r.shared() && (worst == nil || r.Modelled.Update > worst.Modelled.Update) {
			worst = r
		}
	}
	return worst
}

// Other is the row that differs from the worst by its counter alone.
func (a answer) Other() *row {
	worst := a.Worst()
	return experiments.First(a.Rows, func(r *row) bool { return worst != nil && r.Refs == int3.PerCPU && r.like(worst) })
}

// single are the rows that are shown one by one: with a shared counter those in the
// order of waiting that makes most of it, which Orders compares with the others.
func (a answer) single() []*row {
	worst := a.Worst()
	return experiments.Where(a.Rows, func(r *row) bool { return !r.shared() || r.OutOfTurn == worst.OutOfTurn })
}

// Pairs are the updates of which a figure is published.
func (a answer) Pairs() []*row {
	return experiments.Where(a.single(), func(r *row) bool { return r.Ratio() > 0 })
}

// Comparisons are the published figures.
func (a answer) Comparisons() (out []experiments.Comparison) {
	for _, r := range a.Pairs() {
		out = append(out, experiments.Comparison{
			What: r.What() + ", us", Published: r.published.UpdateUS.Value, Ours: r.UpdateNS() / 1000,
			Source: r.published.Source,
			Low:    r.spread.Low / 1000, High: r.spread.High / 1000,
		})
	}
	return out
}

// Orders is what the order of waiting makes of the worst update; nothing where only
// one was tried.
func (a answer) Orders() []*row {
	worst := a.Worst()
	out := experiments.Where(a.Rows, func(r *row) bool { return worst != nil && r.shared() && r.like(worst) })
	if len(out) < 2 {
		return nil
	}
	return out
}

// chart is update time against CPUs.
func (a answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "One counter for all CPUs turns microseconds into a second",
		X:     plots.Axis{Label: "CPUs", Log: true}, Y: plots.Axis{Label: "time of one update (us)", Log: true},
	}
	worst := a.Worst()
	if worst == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("modelled, calibration %s; %s calls of each patched function a second and CPU",
		worst.Machine.Name,
		results.Thousands(math.Floor(worst.Calls/float64(worst.Entries)+0.5)))
	known := plots.Series{Name: "published", Kind: plots.Points}
	least, most := math.Inf(1), 0.0                        // of those that are published with a counter for each CPU
	shown := experiments.Where(a.Rows, func(r *row) bool { // other orders of waiting of the worst batch alone
		return r.Machine.Name == worst.Machine.Name && (!r.shared() || r.Entries == worst.Entries ||
			r.OutOfTurn == worst.OutOfTurn)
	})
	for _, name := range experiments.Distinct(shown, (*row).Series) {
		s := plots.Series{Name: name}
		for _, r := range experiments.Where(shown, func(r *row) bool { return r.Series() == name }) {
			s.X, s.Y = append(s.X, float64(len(r.Roles))), append(s.Y, r.UpdateNS()/1000)
			if r.Ratio() > 0 && (!r.shared() || r.OutOfTurn == worst.OutOfTurn) {
				known.X, known.Y = append(known.X, float64(len(r.Roles))), append(known.Y, r.published.UpdateUS.Value)
				if r != worst {
					least, most = min(least, r.published.UpdateUS.Value), max(most, r.published.UpdateUS.Value)
				}
			}
		}
		c.Series = append(c.Series, s)
	}
	c.Series = append([]plots.Series{known}, c.Series...)
	if worst.Ratio() > 0 {
		c.Notes = append(c.Notes, plots.Note{X: 0.93 * float64(len(worst.Roles)), Y: worst.published.UpdateUS.Value,
			Right: true,
			Text:  fmt.Sprintf("published: %s shared, on %d CPUs", results.Duration(worst.PublishedNS()), len(worst.Roles))})
	}
	if most > 0 {
		c.Notes = append(c.Notes, plots.Note{X: 0.93 * float64(len(worst.Roles)), Y: least / 2.5, Right: true,
			Text: fmt.Sprintf("published: %s to %s for the others", results.Duration(least*1e3), results.Duration(most*1e3))})
	}
	return c
}

// Series is what the row's line is called.
func (r *row) Series() string {
	if r.shared() {
		return fmt.Sprintf("shared, %d, %s out of turn", r.Entries, results.Percent(r.OutOfTurn))
	}
	return fmt.Sprintf("per CPU, %d entries", r.Entries)
}
