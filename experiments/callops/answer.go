// SPDX-License-Identifier: Apache-2.0

package callops

import (
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
)

// answer is the rows that were finished, and what follows from them.
type answer struct {
	*experiments.Study[Config, *row]
	Slips []published.Slip
	Paths []*path
	m1    []published.CallTime
}

// M1Source is where the figures of the Apple M1 are from.
func (a *answer) M1Source() string { return published.M1Calls.Source }

// Skip is what an unrelated tracer adds over the list; nil where the rows make no
// lines.
func (a *answer) Skip() *fit.Estimate {
	skip := a.line("skip")
	if skip == nil || a.Constant() == nil {
		return nil
	}
	return &skip.Line.Slope
}

// Constant is the claim that with a literal it adds nothing.
func (a *answer) Constant() *judged { return judgeConstant(a.Rows) }

// cliff is what the second tracer of a function costs, and why.
type cliff struct {
	One, Two, Without *row
	WithOthers        int64 // entries walked with 100 tracers of others
}

// Cliff is nil where the table does not have those rows.
func (a *answer) Cliff() *cliff {
	c := &cliff{
		One: a.find(published.WithCallOps, published.RelevantBlock, 1, 0), Two: a.find(published.WithCallOps,
			published.RelevantBlock, 2, 0),
		Without: a.find(published.WithoutCallOps, published.RelevantBlock, 2, 0),
	}
	_, n, err := newCell(published.WithCallOps, 2, 100)
	if c.One == nil || c.Two == nil || err != nil {
		return nil
	}
	c.WithOthers = n.walked
	return c
}

// judgedSlip is what the lines make of an integer that does not follow.
type judgedSlip struct {
	published.Slip
	Prediction          fit.Estimate
	StatedIn, DerivedIn string
}

// Judged is nil where no line says anything of it.
func (a *answer) Judged(s published.Slip) *judgedSlip {
	r := experiments.First(a.Rows, func(r *row) bool { return r.held && r.predicted() && r.Line == s.Line })
	if r == nil || s.Column != "overhead_ns" {
		return nil
	}
	in := func(v float64) string {
		if r.Prediction.Holds(v) {
			return "inside"
		}
		return "outside"
	}
	return &judgedSlip{Slip: s, Prediction: r.Prediction, StatedIn: in(s.Stated.Float()), DerivedIn: in(r.Overhead)}
}

// OneOff tells whether the total is right and only what is derived from it is not.
func (j *judgedSlip) OneOff() bool { return j.StatedIn == "outside" && j.DerivedIn == "inside" }

// lines are all lines: through published rows, and through this machine's times.
func (a *answer) lines() (out []named) {
	for _, p := range a.Paths {
		if p.Line != nil {
			out = append(out, named{p.Line, p.Name, true})
		}
	}
	if l := a.liveLine(published.WithoutCallOps, true); l != nil {
		out = append(out, named{l, "live list", true})
	}
	if l := a.liveLine(published.WithCallOps, false); l != nil {
		out = append(out, named{l, "live literal", false})
	}
	return out
}

// line is the path of a name, if it has a line.
func (a *answer) line(name string) *path {
	return experiments.First(a.Paths, func(p *path) bool { return p.Name == name && p.Line != nil })
}

// find is a row of the matrix; nil if there is none.
func (a *answer) find(kernel, block string, relevant, irrelevant int) *row {
	return experiments.First(a.Rows, func(r *row) bool {
		return r.Kernel == kernel && r.Block == block && r.Relevant == relevant && r.Irrelevant == irrelevant
	})
}

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
