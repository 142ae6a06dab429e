// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"cmp"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished, and what is published.
type answer struct {
	*experiments.Study[Config, *row]
	Pairs []*pair
	calls []published.MultiCalls
	grown *counts // of a resizable table with all functions
}

func (a *answer) findings() *experiments.Findings {
	f := &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}
	if !a.Config.NoTime {
		f.Documents = experiments.Picture{Picture: a.timeChart().Picture()}.Documents("time")
	}
	return f
}

// row is the row of a table; nil if there is none.
func (a *answer) row(kind string, n int) *row {
	return experiments.First(a.Rows, func(r *row) bool { return r.Kind.String() == kind && r.Functions == n })
}

// most is the largest number of functions.
func (a *answer) most() int { return slices.Max(a.Config.Functions) }

// Counted are the rows of the most functions that say what they do.
func (a *answer) Counted() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Functions == a.most() && r.Counts != nil })
}

// GrownRow is the resizable table with the most functions; nil if there is none.
func (a *answer) GrownRow() *row { return a.row(resizable, a.most()) }

// flat are the tables that stay flat.
type flat struct{ Grown, Padded *row }

// Flat is nil where they were not all looked at.
func (a *answer) Flat() *flat {
	f := &flat{a.GrownRow(), a.row("padding", a.most())}
	if f.Grown == nil || f.Padded == nil || a.row("fixed-256", a.most()) == nil {
		return nil
	}
	return f
}

// Agree tells whether the pairs differ by the same time, within a tenth, as they must
// when a call is one lookup and other things.
func (a *answer) Agree() bool {
	var all []float64
	for _, p := range a.Pairs {
		all = append(all, p.Saves())
	}
	low, high := slices.Min(all), slices.Max(all)
	return low > 0 && high <= 1.1*low
}

// BelowOne tells whether a pair puts a comparison at less than a nanosecond.
func (a *answer) BelowOne() bool {
	return slices.ContainsFunc(a.Pairs, func(p *pair) bool { return a.each(p) < 1 })
}

// Spacing is the mean distance of functions, in bytes.
func (a *answer) Spacing() int { return spacing }

// chart is the cache lines of a lookup against functions.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    "A fixed number of buckets touches a line for every other function in the chain",
		Subtitle: "Cache lines that one lookup touches and others need not, mean over all functions",
		X:        plots.Axis{Label: "functions hooked", Log: true}, Y: plots.Axis{Label: "cache lines of 64 bytes",
			Log: true},
	}
	var curves experiments.Curves
	for _, r := range a.sorted() {
		if r.Counts != nil {
			curves.Add(r.Kind.String(), float64(r.Functions), r.Counts.Lines)
		}
	}
	c.Series = curves.Series
	return c
}

// timeChart is the time of a lookup of functions in random order.
func (a *answer) timeChart() *plots.Chart {
	c := &plots.Chart{
		Title:    "What a lookup takes when functions are called in random order",
		Subtitle: "All of them are hooked and called, on this machine; medians and 95 % intervals",
		X:        plots.Axis{Label: "functions hooked", Log: true}, Y: plots.Axis{Label: "time of one lookup (ns)",
			Log: true},
	}
	var curves experiments.Curves
	for _, r := range a.sorted() {
		t := r.Times.Random
		curves.Between(r.Kind.String(), float64(r.Functions), t.Value, t.Low, t.High)
	}
	c.Series = curves.Series
	return c
}

// sorted are the rows, table by table, and of each the fewest functions first.
func (a *answer) sorted() []*row {
	at := func(r *row) int { return slices.Index(a.Config.Tables, r.Kind) }
	return slices.SortedStableFunc(slices.Values(a.Rows), func(x, y *row) int {
		return cmp.Or(at(x)-at(y), x.Functions-y.Functions)
	})
}
