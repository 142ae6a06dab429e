// SPDX-License-Identifier: Apache-2.0

package callops

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
)

// Claims are those of the mail that can be put to the table.
func (a *answer) Claims() []*judged {
	all := []*judged{judgeConstant(a.Rows), judgeThird(a.Rows)}
	return experiments.Where(all, func(j *judged) bool { return j != nil })
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
	List, Literal      float64 // one tracer, in ns
	Unrelated, Related float64 // another one over the list adds, in ns
	Beside             float64 // an unrelated one with a literal adds
}

// OfList is a time over that of one tracer over the list.
func (s shape) OfList(ns float64) float64 { return ns / s.List }

// Hundred is how many times larger a hundred unrelated tracers make the overhead.
func (s shape) Hundred() float64 { return 1 + 100*s.Unrelated/s.List }

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
		out = append(out, shape{machine, list.Overhead, literal.Overhead, skip.Line.Slope.Value, call.Line.Slope.Value,
			flat.Line.Slope.Value})
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
