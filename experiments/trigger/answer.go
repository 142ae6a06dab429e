// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows, and the claims put to the tables.
type answer struct {
	*experiments.Study[Config, *row]
	RunCount int
	Claims   []*judged
}

// NumClaims is how many claims there are.
func (a *answer) NumClaims() int { return len(claims) }

// Count is how many claims end so when they are put to the runs.
func (a *answer) Count(v fit.Verdict) int {
	return len(experiments.Where(a.Claims, (*judged).ofRuns, func(j *judged) bool { return j.Verdict == v }))
}

// calls are the rows that the headline compares.
type calls struct{ Fentry, Kprobe *row }

// Calls is nil where one of them is missing.
func (a *answer) Calls() *calls {
	c := &calls{a.find(published.Fentry), a.find("kprobe")}
	if c.Fentry == nil || c.Kprobe == nil {
		return nil
	}
	return c
}

func (a *answer) find(mechanism string) *row {
	return experiments.First(a.Rows, func(r *row) bool { return r.Mechanism == mechanism })
}

// Comparisons are the claims and what the runs say.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for _, j := range experiments.Where(a.Claims, (*judged).ofRuns) {
		out = append(out, experiments.Comparison{
			What: j.Text + ", per cent of " +
				"throughput", Published: j.claimed, Ours: j.Percent.Value, Source: published.TriggerRuns.Source,
		})
	}
	return out
}

// InCalls are the claims of a difference that can be told in time of a call.
func (a *answer) InCalls() []*judged {
	return experiments.Where(a.Claims, func(j *judged) bool { return j.inCalls && j.claimed != 0 })
}

// Known are the rows of which there are several runs.
func (a *answer) Known() []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.known })
}

// Apart are those that are not one more of these runs.
func (a *answer) Apart() []*row {
	return experiments.Where(a.Known(), func(r *row) bool { return r.ApartP < 0.05 })
}

// spreads are how many times the published spread the runs differ.
func (a *answer) spreads() (out []float64) {
	for _, r := range a.Known() {
		if r.PlusMinus != 0 {
			out = append(out, r.Runs.Percent/100*r.Runs.Mean/r.PlusMinus)
		}
	}
	if out == nil {
		out = []float64{0}
	}
	return out
}

// LeastSpread and MostSpread are the least and the most of these.
func (a *answer) LeastSpread() float64 { return slices.Min(a.spreads()) }
func (a *answer) MostSpread() float64  { return slices.Max(a.spreads()) }

// chart is the time of a call by mechanism.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "What a program costs each call, by the way it is attached", Alone: true,
		Subtitle: "published throughput turned into time, less the loop with nobody attached",
		X:        plots.Axis{Label: "time of a call (ns)"}, Y: plots.Axis{Names: []string{}},
	}
	one := plots.Series{Name: "on one function", Kind: plots.Lying}
	multi := plots.Series{Name: "multi form, on one function or all", Kind: plots.Lying}
	for _, r := range a.Rows {
		if r.loop {
			continue
		}
		to := &one
		if strings.Contains(r.Mechanism, "-multi") {
			to = &multi
		}
		to.X, to.Y = append(to.X, r.CallNS), append(to.Y, float64(len(c.Y.Names)))
		to.Labels = append(to.Labels, fmt.Sprintf("%.1f", r.CallNS))
		c.Y.Names = append(c.Y.Names, r.Mechanism)
	}
	c.Series = experiments.Where([]plots.Series{one, multi}, func(s plots.Series) bool { return len(s.X) > 0 })
	c.Height = vg.Length(34+5.5*float64(max(len(c.Y.Names), 4))) * vg.Millimeter
	return c
}
