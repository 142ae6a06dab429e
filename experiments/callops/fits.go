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
}

// OffPercent is how far rows are off the line, of its value.
func (p *path) OffPercent() float64 { return 100 * p.Line.ResidualSD }

// paths are the ways that a call of a traced function goes. All overheads are taken
// to be off by the same share of themselves.
func newPaths() []*path {
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
		mine := experiments.Where(rows, func(r *row) bool { return r.path == nil && p.of(r.CallCost) })
		for _, row := range mine {
			row.path, row.held = p, slices.Contains(c.Hold, p.x(row.CallCost))
		}
		known := experiments.Where(mine, func(r *row) bool { return !r.held })
		var err error
		if p.Line, err = through(known, p.x, overhead, true); err != nil {
			p.Why = err.Error()
			continue
		}
		for _, row := range mine {
			x := float64(p.x(row.CallCost))
			at := p.Line.At(x)
			row.Prediction = p.Line.Predict(x, 1/(at*at))
		}
	}
	return paths
}

func irrelevant(c published.CallCost) int { return c.Irrelevant }
func relevant(c published.CallCost) int   { return c.Relevant }
func overhead(r *row) float64             { return r.Overhead }

// through is the line through times of rows; relative says that they are off by the same share of themselves.
func through(rows []*row, x func(published.CallCost) int, y func(*row) float64, relative bool) (*fit.Line, error) {
	var xs, ys, weights []float64
	for _, r := range rows {
		xs, ys = append(xs, float64(x(r.CallCost))), append(ys, y(r))
	}
	if relative {
		weights = fit.Relative(ys)
	}
	return fit.Fit(xs, ys, weights)
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
	of := experiments.Where(rows, func(r *row) bool {
		return r.Kernel == published.WithCallOps && r.Block == published.Irrelevant1
	})
	l, err := through(of, irrelevant, overhead, false)
	if err != nil || l.Intercept.Value <= 0 {
		return nil
	}
	most := 0.0
	for _, r := range of {
		most = max(most, float64(r.Irrelevant))
	}
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
}

// M1Source is where the figures of the Apple M1 are from.
func (a *answer) M1Source() string { return published.M1Calls.Source }

// Constant is the claim that with a literal an unrelated tracer adds nothing; nil where the rows make no line.
func (a *answer) Constant() *judged { return judgeConstant(a.Rows) }

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

// Claims are those of the mail that can be put to the table; the first is that a literal adds nothing.
func (a *answer) Claims() []*judged {
	all := []*judged{judgeConstant(a.Rows), judgeThird(a.Rows)}
	return experiments.Where(all, func(j *judged) bool { return j != nil })
}

// liveLine is the line through this machine's times of one kernel against tracers
// of another function; nil if it was not timed.
func (a *answer) liveLine(kernel string, relative bool) *fit.Line {
	timed := experiments.Where(a.Rows, func(r *row) bool {
		return r.live != nil && r.Kernel == kernel && r.Block == published.Irrelevant1
	})
	l, err := through(timed, irrelevant, func(r *row) float64 { return r.live.Value }, relative)
	if err != nil {
		return nil
	}
	return l
}

// machine is one whose times have a shape: what more tracers add to the overhead of one.
type machine struct{ Machine, From string }

// machines are those of the published table, of the M1 and this one.
func (c *Config) machines() []machine {
	table := "the published table"
	if c.Published == "" {
		table = "RISC-V on QEMU"
	}
	return []machine{{table, "table"}, {"Apple M1", "m1"}, {"this machine", "live"}}
}
