// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished, and what they are held against.
type answer struct {
	*experiments.Study[Config, *row]
	Measured  []comparison
	Predicted []prediction
	Unknown   []string // published cases of which it is not known how they were attached
}

func (a *answer) findings() *experiments.Findings {
	growth := experiments.Picture{Picture: a.growth().Picture()}
	return &experiments.Findings{
		Report: a, Pictures: []experiments.Picture{{Picture: partChart(a.Dearest()).Picture()}},
		Documents: append(growth.Documents("growth"),
			experiments.Declared(a.Form, "measured", a.Measured), experiments.Declared(a.Form, "predicted", a.Predicted)),
	}
}

// both is attaching and detaching of the same functions.
type both struct{ On, Off *row }

func (b both) seconds() float64 { return b.On.Seconds() + b.Off.Seconds() }

// Pairs are those of the most functions that were counted, in the order of rows.
func (a *answer) Pairs() (out []both) {
	n := 0
	for _, r := range a.Rows {
		n = max(n, r.Counts.Functions)
	}
	for i := 0; i+1 < len(a.Rows); i += 2 { // jobs come in pairs
		if a.Rows[i].Counts.Functions == n {
			out = append(out, both{a.Rows[i], a.Rows[i+1]})
		}
	}
	return out
}

// Dearest is the pair that takes longest; nil if there is none.
func (a *answer) Dearest() (most *both) {
	for _, b := range a.Pairs() {
		if most == nil || b.seconds() > most.seconds() {
			most = &b
		}
	}
	return most
}

// Others are the pairs of the other ways of the dearest's kernel.
func (a *answer) Others() []both {
	most := a.Dearest()
	return experiments.Where(a.Pairs(), func(b both) bool { return b.On.Kernel == most.On.Kernel && b.On != most.On })
}

// Assumed is what is assumed of records, hashes and allocations.
func (a *answer) Assumed() ledger.Extra { return ledger.AssumedExtra }

// AssumedImageUS is the time to generate a trampoline, in microseconds.
func (a *answer) AssumedImageUS() float64 { return ledger.AssumedExtra.Image / 1e3 }

// InSeconds is a time in seconds.
func (a *answer) InSeconds(ns float64) float64 { return ns / 1e9 }

// Comparisons are the rounds of real kernels: single readings, and formulas for 1000
// functions.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for _, c := range a.Measured {
		if c.reading || c.Functions == 1000 {
			out = append(out, experiments.Comparison{
				What:      fmt.Sprintf("%s, %s, %s of %d: rounds by %s", c.kernel, c.Way, c.Direction, c.Functions, c.Kind()),
				Published: float64(c.Measured), Ours: float64(c.Model), Exact: true, Source: c.source,
			})
		}
	}
	return out
}

// Predictions are those of published times.
func (a *answer) Predictions() (out []experiments.Comparison) {
	for _, p := range a.Predicted {
		out = append(out, p.Pair())
	}
	return out
}

// Different are the measurements that are not the model's.
func (a *answer) Different() []comparison {
	return experiments.Where(a.Measured, func(c comparison) bool { return c.Difference() != 0 })
}

// Same counts those that are.
func (a *answer) Same() int { return len(a.Measured) - len(a.Different()) }

// Quick are the cases that were detached in less than one wait of the calibrations.
func (a *answer) Quick() []prediction {
	return experiments.Where(a.Predicted, func(p prediction) bool {
		return p.Direction == published.Detach && p.Fitted != "" && p.Functions > 1 && p.Published < statedWait
	})
}

// partChart is the parts of the dearest.
func partChart(b *both) *plots.Chart {
	c := &plots.Chart{Title: "Nothing was counted", X: plots.Axis{Label: "modelled time (s)"},
		Y: plots.Axis{Names: []string{}}}
	if b == nil {
		return c
	}
	c.Title = fmt.Sprintf(
		"%s functions one ops at a time: %s of %s are waits",
		results.Thousands(
			b.On.Counts.Functions,
		),
		results.Seconds(b.Off.GracePeriods()),
		results.Seconds(b.seconds()),
	)
	if b.On.Counts.Ops == 1 {
		c.Title = fmt.Sprintf("%s functions take %s", results.Thousands(b.On.Counts.Functions),
			results.Seconds(b.seconds()))
	}
	c.Subtitle = fmt.Sprintf("%s on %s, machine %s; counts are exact, times modelled.", b.On.Way.Name, b.On.Kernel.Name(),
		b.On.Machine.Name)
	on, off := plots.Series{Name: published.Attach, Kind: plots.Lying}, plots.Series{Name: published.Detach,
		Kind: plots.Lying}
	for i, p := range b.On.Parts {
		q := b.Off.Parts[i]
		c.Y.Names = append(c.Y.Names, p.Name)
		for _, side := range []struct {
			to *plots.Series
			ns float64
		}{{&on, p.NS}, {&off, q.NS}} {
			if side.ns > 0 {
				side.to.X, side.to.Y = append(side.to.X, side.ns/1e9), append(side.to.Y, float64(i))
				side.to.Labels = append(side.to.Labels, results.Seconds(side.ns/1e9))
			}
		}
	}
	c.Series = []plots.Series{on, off}
	return c
}

// growth is time against functions, attaching and detaching, of each way of the
// dearest's kernel.
func (a *answer) growth() *plots.Chart {
	c := &plots.Chart{Title: "Only ways with few ops grow slowly", X: plots.Axis{Label: "functions", Log: true},
		Y: plots.Axis{Label: "modelled time to attach and detach (s)", Log: true}}
	most := a.Dearest()
	if most == nil {
		return c
	}
	c.Subtitle = fmt.Sprintf("%s, machine %s; times modelled.", most.On.Kernel.Name(), most.On.Machine.Name)
	var curves experiments.Curves
	for i := 0; i+1 < len(a.Rows); i += 2 {
		b := both{a.Rows[i], a.Rows[i+1]}
		if b.On.Kernel == most.On.Kernel {
			curves.Add(b.On.Way.Name, float64(b.On.Counts.Functions), b.seconds())
		}
	}
	c.Series = curves.Series
	return c
}
