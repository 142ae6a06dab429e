// SPDX-License-Identifier: Apache-2.0

package refcount

import (
	"fmt"
	"math"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

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
