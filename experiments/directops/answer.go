// SPDX-License-Identifier: Apache-2.0

package directops

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
	Attached []*attachRow
	times    []published.AttachTime
}

func (a *answer) findings() *experiments.Findings {
	return &experiments.Findings{
		Report: a, Pictures: []experiments.Picture{{Picture: chart(a.Pairs()).Picture()}},
		Documents: []results.Document{experiments.Declared(a.Form, "attach", a.Attached)},
	}
}

// Slow is the first pair on the slow path, where the difference is largest; nil if
// there is none.
func (a *answer) Slow() *pair {
	return a.first(func(p *pair) bool { return p.Each.slow })
}

func (a *answer) first(holds func(*pair) bool) *pair { return experiments.Find(a.Pairs(), holds) }

// Fast is the fast path in branch range of the same instruction set.
func (a *answer) Fast(like *pair) *pair {
	return a.first(func(p *pair) bool { return p.Each.arch == like.Each.arch && p.Each.setup == setup{} })
}

// Far are the pairs on the fast path out of branch range.
func (a *answer) Far() []pair {
	return experiments.Where(a.Pairs(), func(p pair) bool { return p.Each.far && !p.Each.slow })
}

// pair is the same calls with an ops each and with one for all.
type pair struct{ Each, One *row }

// Pairs are those with the most trampolines, in the order of rows.
func (a *answer) Pairs() (out []pair) {
	most := 0
	for _, r := range a.Rows {
		most = max(most, r.Trampolines)
	}
	for _, each := range a.Rows {
		if each.setup.one || each.Trampolines != most {
			continue
		}
		for _, one := range a.Rows {
			want := each.setup
			want.one = true
			if one.arch == each.arch && one.setup == want && one.Trampolines == most {
				out = append(out, pair{each, one})
			}
		}
	}
	return out
}

// statedWait is what a wait for all tasks takes, as the author of the
// measurements says: about 100 ms (bpf-next, 2026-01).
const statedWait = 0.1

// Comparisons are what one ops saves when a program is attached to some functions and
// detached again: a wait each.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for _, with := range a.times {
		for _, without := range a.times {
			if with.Functions != without.Functions || !strings.HasSuffix(with.Case, "per-trampoline ops") ||
				!strings.HasSuffix(without.Case, "single direct ops") {
				continue
			}
			out = append(out, experiments.Comparison{
				What: fmt.Sprintf("seconds that one ops saves for %d functions, and a wait of %g ms for each", with.Functions,
					1e3*statedWait),
				Published: with.AttachS - without.AttachS, Ours: float64(with.Functions) * statedWait, Source: with.Source,
			})
		}
	}
	return out
}

// chart is the loads of a call with the most trampolines.
func chart(pairs []pair) *plots.Chart {
	c := &plots.Chart{Title: "One ops makes the slow path short, and the far path long",
		X: plots.Axis{Label: "loads of a call", Log: true}, Y: plots.Axis{Names: []string{}}}
	curves := experiments.Curves{Kind: plots.Lying}
	for i, p := range pairs {
		c.Subtitle = fmt.Sprintf("%s trampolines.", results.Thousands(p.Each.Trampolines))
		c.Y.Names = append(c.Y.Names, fmt.Sprintf("%s, %s, %s", p.Each.Arch(), p.Each.Place(), p.Each.Path()))
		curves.Add("an ops for each trampoline", p.Each.Loads, float64(i), label(p.Each))
		curves.Add("one ops for all", p.One.Loads, float64(i), label(p.One))
	}
	c.Series = curves.Series
	c.Height = vg.Length(36+10*max(len(pairs), 4)) * vg.Millimeter
	return c
}

// label is the loads, with a remark where no kernel does it so.
func label(r *row) string {
	text := results.Thousands(math.Round(10*r.Loads) / 10)
	if !r.InKernel {
		text += " (in no kernel)"
	}
	return text
}
