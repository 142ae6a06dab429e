// SPDX-License-Identifier: Apache-2.0

// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/call"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/kernels/published"
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
