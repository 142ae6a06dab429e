// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is what the rows say that were finished, and what they are held against.
type answer struct {
	*experiments.Study[Config, *row]
	Measured  []comparison
	Predicted []prediction
	Unknown   []string // published cases of which it is not known how they were attached
}

// both is attaching and detaching of the same functions.
type both struct{ On, Off *row }

// Seconds is the modelled time of both.
func (b both) Seconds() float64 { return b.On.Seconds() + b.Off.Seconds() }

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
		if most == nil || b.Seconds() > most.Seconds() {
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

// part is what a part of attaching, or of detaching, takes.
type part struct {
	both
	ledger.Part
	Direction string
}

// parts are those of the dearest.
func (a *answer) parts() (out []part) {
	if b := a.Dearest(); b != nil {
		for i, p := range b.On.Parts {
			out = append(out, part{*b, p, published.Attach}, part{*b, b.Off.Parts[i], published.Detach})
		}
	}
	return out
}
