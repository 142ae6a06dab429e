// SPDX-License-Identifier: Apache-2.0

package callops

import (
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// Tables are those of the report that are no rows.
func (a *answer) Tables() (out []form.Table) {
	out = append(out, a.fitTable())
	if s := a.claimTable(); len(s.Rows) > 0 {
		out = append(out, s)
	}
	return append(out, a.shapeTable())
}

func (a *answer) fitTable() form.Table {
	s := form.Table{Title: "Lines through the published rows that are not held out",
		Columns: []string{"line", "rows", "intercept, ns", "95 % interval", "each tracer adds, ns", "95 % interval",
			"p: nothing", "R2", "rows off by, sd", "what it is"}}
	for _, p := range a.paths {
		if p.line == nil {
			s.Rows = append(s.Rows, []string{p.name, "", "", "", "", "", "", "", "", p.why})
			continue
		}
		l := p.line
		s.Rows = append(s.Rows, []string{
			p.name, fmt.Sprint(l.N), fmt.Sprintf("%.1f", l.Intercept.Value), experiments.Span(1,
				l.Intercept), fmt.Sprintf("%.2f", l.Slope.Value), experiments.Span(2, l.Slope),
			results.P(l.SlopeP), fmt.Sprintf("%.5f", l.R2), fmt.Sprintf("%.1f %%", 100*l.ResidualSD), p.doc,
		})
	}
	return s
}

func (a *answer) claimTable() form.Table {
	s := form.Table{Title: "The claims of the mail", Columns: []string{"claim", "found", "hypothesis", "p",
		"verdict"}}
	for _, j := range []*judged{judgeConstant(a.Rows), judgeThird(a.Rows)} {
		if j != nil {
			s.Rows = append(s.Rows, []string{j.claim, j.found, j.test, results.P(j.p), string(j.Verdict)})
		}
	}
	return s
}

// liveLine is the line through this machine's times of one kernel against tracers
// of another function; nil if it was not timed.
func (a *answer) liveLine(kernel string, relative bool) *fit.Line {
	var x, y []float64
	for _, r := range a.Rows {
		if r.live != nil && r.Kernel == kernel && r.Block == published.Irrelevant1 {
			x, y = append(x, float64(r.Irrelevant)), append(y, r.live.Value)
		}
	}
	var weights []float64
	if relative {
		weights = fit.Relative(y)
	}
	l, err := fit.Fit(x, y, weights)
	if err != nil {
		return nil
	}
	return l
}

// liveLines are the lines through this machine's times.
type liveLines struct{ List, Literal *fit.Line }

// LiveLines is nil where nothing was timed.
func (a *answer) LiveLines() *liveLines {
	l := &liveLines{a.liveLine(published.WithoutCallOps, true), a.liveLine(published.WithCallOps, false)}
	if l.List == nil || l.Literal == nil {
		return nil
	}
	return l
}

// shape is what a machine's times are like: overheads of one tracer, and what more
// of them add.
type shape struct {
	Machine            string
	list, literal      float64 // one tracer, in ns
	unrelated, related float64 // another one over the list adds, in ns
	beside             float64 // an unrelated one with a literal adds
}

// Hundred is how many times larger a hundred unrelated tracers make the overhead.
func (s shape) Hundred() float64 { return 1 + 100*s.unrelated/s.list }

// Shapes are the shapes of the published table, of the M1 and of this machine.
func (a *answer) Shapes() (out []shape) {
	list := a.find(published.WithoutCallOps, published.Irrelevant1, 1, 0)
	literal := a.find(published.WithCallOps, published.Irrelevant1, 1, 0)
	if skip, call, flat := a.line("skip"), a.line("call"), a.line("literal"); skip != nil && call != nil && flat != nil &&
		list != nil && literal != nil {
		machine := "the published table"
		if a.Config.Published == "" {
			machine = "RISC-V on QEMU"
		}
		out = append(out, shape{machine, list.Overhead, literal.Overhead, skip.line.Slope.Value, call.line.Slope.Value,
			flat.line.Slope.Value})
	}
	m1 := func(kernel string, relevant, irrelevant int) float64 {
		for _, t := range a.m1 {
			if t.Kernel == kernel && t.Relevant == relevant && t.Irrelevant == irrelevant {
				return t.OverheadNS
			}
		}
		return 0
	}
	one, own := m1(published.WithoutCallOps, 1, 0), m1(published.WithCallOps, 1, 0)
	out = append(out, shape{"Apple M1", one, own,
		(m1(published.WithoutCallOps, 1, 100) - one) / 100, (m1(published.WithoutCallOps, 100,
			0) - one) / 99, (m1(published.WithCallOps, 1, 100) - own) / 100})
	untraced := a.find(published.WithoutCallOps, published.Irrelevant0, 0, 0)
	many := a.find(published.WithoutCallOps, published.RelevantBlock, 100, 0)
	l, flat := a.liveLine(published.WithoutCallOps, true), a.liveLine(published.WithCallOps, false)
	if l != nil && flat != nil && untraced != nil && list != nil && literal != nil && many != nil {
		base := untraced.live.Value
		out = append(out, shape{"this machine", list.live.Value - base, literal.live.Value - base, l.Slope.Value,
			(many.live.Value - list.live.Value) / 99, flat.Slope.Value})
	}
	return out
}

// shapeTable is the shapes.
func (a *answer) shapeTable() form.Table {
	s := form.Table{Title: "How shapes differ", Columns: []string{"machine", "one tracer, list, ns",
		"with a literal, ns", "of the list",
		"an unrelated tracer adds, list, ns", "of one tracer", "a relevant one adds, ns", "of one tracer", "an unrelated " +
			"one adds, literal, ns"}}
	for _, m := range a.Shapes() {
		s.Rows = append(s.Rows, []string{m.Machine, fmt.Sprintf("%.2f", m.list), fmt.Sprintf("%.2f", m.literal),
			fmt.Sprintf("%.3f", m.literal/m.list),
			fmt.Sprintf("%.2f", m.unrelated), fmt.Sprintf("%.3f", m.unrelated/m.list), fmt.Sprintf("%.2f",
				m.related), fmt.Sprintf("%.3f", m.related/m.list), fmt.Sprintf("%+.4f", m.beside)})
	}
	return s
}
