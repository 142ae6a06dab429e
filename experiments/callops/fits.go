// SPDX-License-Identifier: Apache-2.0

package callops

import (
	"fmt"
	"math"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// path is what calls have in common that one line predicts.
type path struct {
	Name, Doc string
	of        func(published.CallCost) bool
	x         func(published.CallCost) int // what varies
	Line      *fit.Line                    // nil: too few rows are left
	Why       string                       // it is nil
	fitted    []*row
}

// OffPercent is how far rows are off the line, of its value.
func (p *path) OffPercent() float64 { return 100 * p.Line.ResidualSD }

// paths are the ways that a call of a traced function goes. All overheads are taken
// to be off by the same share of themselves.
func newPaths() []*path {
	irrelevant := func(c published.CallCost) int { return c.Irrelevant }
	relevant := func(c published.CallCost) int { return c.Relevant }
	return []*path{
		{Name: "literal", Doc: "one tracer, named at the site; against tracers of another function", x: irrelevant,
			of: func(c published.CallCost) bool {
				return c.Kernel == published.WithCallOps && c.Relevant == 1
			}},
		{
			Name: "skip",
			Doc:  "the list function, which skips what does not trace the function; against tracers of another function",
			x:    irrelevant,
			of: func(c published.CallCost) bool {
				return c.Kernel == published.WithoutCallOps && c.Block == published.Irrelevant1
			},
		},
		{Name: "call", Doc: "the list function of both kernels, which calls each of them; against tracers of the function",
			x: relevant, of: func(c published.CallCost) bool {
				return c.Block == published.RelevantBlock && c.Relevant > 0
			}},
	}
}

// predict fits a line to each path, without the rows that are held out, and lets it
// say what all of them come to.
func (c *Config) predict(rows []*row) []*path {
	paths := newPaths()
	for _, p := range paths {
		var mine []*row
		var x, y []float64
		for _, row := range rows {
			if row.path == nil && p.of(row.CallCost) {
				row.path, row.held = p, slices.Contains(c.Hold, p.x(row.CallCost))
				mine, x, y = append(mine, row), append(x, float64(p.x(row.CallCost))), append(y, row.Overhead)
			}
		}
		var fx, fy []float64
		for i, row := range mine {
			if !row.held {
				fx, fy, p.fitted = append(fx, x[i]), append(fy, y[i]), append(p.fitted, row)
			}
		}
		line, err := fit.Fit(fx, fy, fit.Relative(fy))
		if err != nil {
			p.Why = err.Error()
			continue
		}
		p.Line = line
		for i, row := range mine {
			at := line.At(x[i])
			row.Prediction = line.Predict(x[i], 1/(at*at))
		}
	}
	return paths
}

// named is a line and its name.
type named struct {
	*fit.Line
	name     string
	Relative bool // errors are shares of the values
}

// judged is a claim of the mail put to the table.
type judged struct {
	Claim, Found, Test string
	P                  float64
	Verdict            fit.Verdict
}

// constant is how much the overhead may change from end to end and still be called
// constant, as a share of itself.
const constant = 0.10

// judgeConstant puts the mail's claim (a) to the table: with a single tracer the
// overhead does not grow with the tracers of others. All rows are in this fit.
func judgeConstant(rows []*row) *judged {
	var x, y []float64
	for _, r := range rows {
		if r.Kernel == published.WithCallOps && r.Block == published.Irrelevant1 {
			x, y = append(x, float64(r.Irrelevant)), append(y, r.Overhead)
		}
	}
	l, err := fit.Fit(x, y, nil)
	if err != nil || l.Intercept.Value <= 0 {
		return nil
	}
	most := slices.Max(x)
	limit := constant * l.Intercept.Value / most
	slope := fit.Mean{Value: l.Slope.Value, SE: l.Slope.SE, DF: float64(l.N - 2)}
	return &judged{
		Claim: "(a) one tracer: constant, whatever traces other functions",
		Found: fmt.Sprintf("%+.4f ns for each of them, %+.4f to %+.4f (95 %%); %+.1f %% to %+.1f %% with %.0f of them",
			l.Slope.Value, l.Slope.Low, l.Slope.High,
			100*l.Slope.Low*most/l.Intercept.Value, 100*l.Slope.High*most/l.Intercept.Value, most),
		Test: fmt.Sprintf("slope 0: p %s; changes by %.0f %% or more", results.P(l.SlopeP), 100*constant),
		P:    slope.Within(-limit, limit).P, Verdict: slope.Claim(-limit, limit),
	}
}

// The claim "about 1/3" holds where the ratio is nearer to 1/3 than to 1/4 or 1/2.
var thirdLow, thirdHigh = (1.0/4 + 1.0/3) / 2, (1.0/3 + 1.0/2) / 2

// judgeThird puts claim (b) to the table: the overhead of a single tracer has dropped
// to about 1/3. With call_ops all rows with one tracer say what it is.
func judgeThird(rows []*row) *judged {
	var with, without []float64
	for _, r := range rows {
		switch {
		case r.Relevant != 1 || r.Overhead <= 0:
		case r.Kernel == published.WithCallOps:
			with = append(with, math.Log(r.Overhead))
		case r.Irrelevant == 0:
			without = append(without, math.Log(r.Overhead))
		}
	}
	w, err := fit.Welch(with, without)
	if err != nil {
		return nil
	}
	m := fit.Mean{Value: w.Estimate.Value, SE: w.Estimate.SE, DF: w.DF}
	ratio := w.Estimate.Apply(math.Exp)
	return &judged{
		Claim: "(b) one tracer: dropped to about 1/3",
		Found: fmt.Sprintf("to %.4f, %.4f to %.4f (95 %%); %.1f ns of %.1f ns, geometric means of %d and %d rows",
			ratio.Value, ratio.Low, ratio.High,
			math.Exp(fit.Average(with, nil)), math.Exp(fit.Average(without, nil)), len(with), len(without)),
		Test: fmt.Sprintf("exactly 1/3: p %s; not nearest to 1/3", results.P(m.Differs(math.Log(1.0/3)).P)),
		P:    m.Within(math.Log(thirdLow), math.Log(thirdHigh)).P, Verdict: m.Claim(math.Log(thirdLow), math.Log(thirdHigh)),
	}
}

// answer is the rows that were finished, and what follows from them.
type answer struct {
	*experiments.Study[Config, *row]
	Slips      []published.Slip
	Paths      []*path
	WithOthers int64 // entries that a call of two tracers walks with 100 of others
	m1         []published.CallTime
}

// M1Source is where the figures of the Apple M1 are from.
func (a *answer) M1Source() string { return published.M1Calls.Source }

// Constant is the claim that with a literal an unrelated tracer adds nothing; nil where the rows make no line.
func (a *answer) Constant() *judged { return judgeConstant(a.Rows) }

// judgedSlip is what the lines make of an integer that does not follow.
type judgedSlip struct {
	published.Slip
	Prediction          fit.Estimate
	StatedIn, DerivedIn string
}

// Judged is nil where no line says anything of it.
func (a *answer) Judged(s published.Slip) *judgedSlip {
	r := experiments.First(a.Rows, func(r *row) bool { return r.held && r.path != nil && r.path.Line != nil && r.Line == s.Line })
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

// Claims are those of the mail that can be put to the table; the first is that a literal adds nothing.
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
