// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is what the rows say that were finished, and what is published.
type answer struct {
	*experiments.Study[Config, *row]
	Pairs []*pair
	calls []published.MultiCalls
	Grown *counts // of a resizable table with all functions
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
	return slices.ContainsFunc(a.Pairs, func(p *pair) bool { return a.Each(p) < 1 })
}

// Spacing is the mean distance of functions, in bytes.
func (a *answer) Spacing() int { return spacing }
