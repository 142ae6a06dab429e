// SPDX-License-Identifier: Apache-2.0

// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/call"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says which table is gone through, and which rows are held out.
// Its fields are the flags of call-ops.experiment.
type Config struct {
	Published string
	Hold      []int
	NoTime    bool
	Repeats   int
}

// Experiment is the question.
var Experiment = experiments.New("callops/call-ops.experiment", measure)

// maxTracers is as many as one row may have.
const maxTracers = 10_000

// from is what the table is called in messages.
func (c *Config) from() string { return cmp.Or(c.Published, published.CallCosts.Name) }

// row is one of the published ones, three ways.
type row struct {
	published.CallCost
	Source string // of the published rows
	*call.Call
	live       *fit.Estimate // of one call, in ns; nil with NoTime
	PerCall    float64       // published total over published calls
	Overhead   float64       // that without the kernel's untraced call
	path       *path         // nil: no tracer is on the function
	held       bool
	Prediction fit.Estimate // of the overhead
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	costs, err := published.CallCosts.Read(c.Published)
	if err != nil {
		return nil, err
	}
	for _, cost := range costs {
		if n := cost.Relevant + cost.Irrelevant; n > maxTracers {
			return nil, fmt.Errorf("%s:%d: %d tracers: want %d at most", c.from(), cost.Line, n, maxTracers)
		}
	}
	a := &answer{Study: s}
	if a.Slips, err = published.CallSlips(c.from(), costs); err != nil {
		return nil, err
	}
	if c.Published != "" {
		for _, slip := range a.Slips {
			s.Log.Warn(slip.String())
		}
	}
	m1, err := published.M1Calls.Read("")
	if err != nil {
		return nil, err
	}
	others, err := attached(published.WithCallOps, 2, 100)
	if err != nil {
		return nil, err
	}
	a.WithOthers = others.Counts.Walked
	all, err := c.prepare(costs)
	if err != nil {
		return nil, err
	}
	s.Asked = len(all)
	a.Paths = c.predict(all)
	if !c.NoTime {
		err = c.time(ctx, all)
	}
	if err == nil {
		err = experiments.Each(ctx, s, all, func(r *row) (*row, error) { return r, nil })
	}
	if c.Published != "" && len(a.Slips) > 0 { // those of the table that comes with the program are known
		s.No = fmt.Errorf("%s: integers that do not follow from the others: %d; the first: %s", c.Published, len(a.Slips), a.Slips[0])
	}
	return a, errors.Join(err, experiments.Beside(s, "fits", a.lines()), experiments.Beside(s, "m1", m1),
		experiments.Beside(s, "shapes", c.machines()))
}

// ways are those of kernels. The tracers are those of the sample module, which no
// global function may lead to: without call_ops all calls go over the list.
var ways = map[string]string{published.WithoutCallOps: "list", published.WithCallOps: "call-ops"}

// attached is a call of a function with so many tracers, beside those of another one.
func attached(kernel string, relevant, irrelevant int) (*call.Call, error) {
	kind, err := dispatch.Parse(ways[kernel])
	if err != nil {
		return nil, err
	}
	own := make([]*tracers.Ops, relevant)
	for i := range own {
		own[i] = call.Callback()
	}
	return call.New(kind.New, irrelevant, own...)
}

// prepare attaches the tracers of each published row, and counts.
func (c *Config) prepare(costs []published.CallCost) (rows []*row, err error) {
	for _, cost := range costs {
		base, _ := published.Untraced(costs, cost.Kernel)
		row := &row{CallCost: cost, Source: cmp.Or(c.Published, published.CallCosts.Source), PerCall: perCall(cost)}
		row.Overhead = row.PerCall - perCall(base)
		if cost.Calls == base.Calls { // one division is rounded less
			row.Overhead = float64(cost.TotalNS-base.TotalNS) / float64(cost.Calls)
		}
		if row.Call, err = attached(cost.Kernel, cost.Relevant, cost.Irrelevant); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", c.from(), cost.Line, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// perCall is what a call takes by the row's total, not truncated.
func perCall(c published.CallCost) float64 { return float64(c.TotalNS) / float64(c.Calls) }

const (
	// leastRepeat is how long one measurement takes at least: long against a tick
	// of the clock.
	leastRepeat = time.Millisecond / 2
	// chunk is how many calls lie between two looks at the clock.
	chunk = 128
)

// time times all rows in turns.
func (c *Config) time(ctx context.Context, rows []*row) error {
	var task dispatch.Task
	times, err := clock.Turns(ctx, c.Repeats, len(rows), func(i int) float64 {
		return clock.Once(leastRepeat, chunk, func() { rows[i].Repeat(chunk, &task) })
	})
	for i := range times {
		rows[i].live = &times[i].Estimate
	}
	return err
}

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
		mine := spelling.Where(rows, func(r *row) bool { return r.path == nil && p.of(r.CallCost) })
		for _, row := range mine {
			row.path, row.held = p, slices.Contains(c.Hold, p.x(row.CallCost))
		}
		known := spelling.Where(mine, func(r *row) bool { return !r.held })
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
	of := spelling.Where(rows, func(r *row) bool {
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
			math.Exp(stat.Mean(with, nil)), math.Exp(stat.Mean(without, nil)), len(with), len(without)),
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
	return spelling.Where(all, func(j *judged) bool { return j != nil })
}

// liveLine is the line through this machine's times of one kernel against tracers
// of another function; nil if it was not timed.
func (a *answer) liveLine(kernel string, relative bool) *fit.Line {
	timed := spelling.Where(a.Rows, func(r *row) bool {
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
