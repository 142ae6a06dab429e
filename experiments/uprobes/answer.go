// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/kernels/uprobes"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows.
type answer struct {
	*experiments.Study[Config, *row]
}

func (a *answer) findings() *experiments.Findings {
	return &experiments.Findings{
		Report:   a,
		Pictures: []experiments.Picture{{Picture: a.chart().Picture()}},
		No:       a.differ(),
	}
}

// Worst is the row with the most interrupts; nil where none sends any.
func (a *answer) Worst() (out *row) {
	for _, r := range a.Rows {
		if n := r.FirstHit + r.Disable; n > 0 && (out == nil || n > out.FirstHit+out.Disable) {
			out = r
		}
	}
	return out
}

// Kinds are one row of each release and instruction, the first.
func (a *answer) Kinds() []*row {
	type kind struct {
		release string
		insn    uprobes.Insn
	}
	of := func(r *row) kind { return kind{r.Release, r.Insn} }
	var out []*row
	for _, k := range experiments.Distinct(a.Rows, of) {
		out = append(out, experiments.First(a.Rows, func(r *row) bool { return of(r) == k }))
	}
	return out
}

// Becomes says what the breakpoint becomes.
func (r *row) Becomes() string { return r.what() }

// Rounds says how often every other CPU is interrupted for one site and one process.
func (r *row) Rounds() string {
	if !r.predicted() {
		return ""
	}
	c := r.Does.Cost(1, 1)
	return fmt.Sprintf("%d, %d", c.FirstHit, c.Disable)
}

// Comparisons are the rows that were measured.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	for _, r := range a.Rows {
		for _, phase := range []string{published.FirstHit, published.Disable} {
			if m, ok := r.measured[phase]; ok {
				out = append(out, experiments.Comparison{
					What: fmt.Sprintf(
						"%s, %s, %d sites, %d processes: interrupts, %s",
						r.Release,
						r.Insn,
						r.Sites,
						r.Processes,
						phase,
					),
					Published: float64(m.Interrupts), Ours: float64(r.in(phase)), Exact: true, Source: m.Source,
				})
			}
		}
	}
	return out
}

func (r *row) in(phase string) int {
	if phase == published.Disable {
		return r.Disable
	}
	return r.FirstHit
}

// differ is the first row that is not what was measured.
func (a *answer) differ() error {
	for _, r := range a.Rows {
		for _, phase := range []string{published.FirstHit, published.Disable} {
			if m, ok := r.measured[phase]; ok && (!r.predicted() || int64(r.in(phase)) != m.Interrupts) {
				return fmt.Errorf("%s, %s, %d sites, %d processes: %d interrupts are predicted at %s, measured are %d", r.Release,
					r.Insn, r.Sites, r.Processes, r.in(phase), phase, m.Interrupts)
			}
		}
	}
	return nil
}

// chart is what one site and process send, by release and instruction.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    "What one USDT site sends every other CPU, once for each process",
		Subtitle: "x86-64; first hit: sent by the probed program",
		X:        plots.Axis{Names: []string{}}, Y: plots.Axis{Label: "interrupts"},
	}
	curves := experiments.Curves{Kind: plots.Bars}
	for _, r := range slices.DeleteFunc(a.Kinds(), func(r *row) bool { return !r.predicted() }) {
		at := float64(len(c.X.Names))
		c.X.Names = append(c.X.Names, r.Release+" "+r.Insn.String())
		one := r.Does.Cost(1, 1)
		curves.Add("first hit", at, float64(one.FirstHit))
		curves.Add("removal", at, float64(one.Disable))
	}
	c.Series = curves.Series
	return c
}
