// SPDX-License-Identifier: Apache-2.0

// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
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

//go:embed call-ops.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{Form: declared, Measure: measure}).Experiment()

// maxTracers is as many as one row may have.
const maxTracers = 10_000

// from is what the table is called in messages.
func (c *Config) from() string { return cmp.Or(c.Published, published.CallCosts.Name) }

// row is one of the published ones, three ways.
type row struct {
	published.CallCost
	Source     string // of the published rows
	counts     counts
	live       *fit.Estimate // of one call, in ns; nil with NoTime
	PerCall    float64       // published total over published calls
	Overhead   float64       // that without the kernel's untraced call
	path       *path         // nil: no tracer is on the function
	held       bool
	Prediction fit.Estimate // of the overhead
}

// counts are what one call takes.
type counts struct{ loads, walked, called int64 }

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
	if a.m1, err = published.M1Calls.Read(""); err != nil {
		return nil, err
	}
	_, others, err := newCell(published.WithCallOps, 2, 100)
	if err != nil {
		return nil, err
	}
	a.WithOthers = others.walked
	all, cells, err := c.prepare(costs)
	if err != nil {
		return nil, err
	}
	s.Asked = len(all)
	a.Paths = c.predict(all)
	if !c.NoTime {
		err = c.time(ctx, all, cells)
	}
	if err == nil {
		err = experiments.Each(ctx, s, all, func(r *row) (*row, error) { return r, nil })
	}
	if c.Published != "" && len(a.Slips) > 0 { // those of the table that comes with the program are known
		s.No = fmt.Errorf("%s: integers that do not follow from the others: %d; the first: %s", c.Published, len(a.Slips), a.Slips[0])
	}
	return a, errors.Join(err, experiments.Beside(s, "fits", a.lines()))
}

// The function that is called, and the one that unrelated tracers trace.
const (
	mine      records.Addr = 0xffffffff81000010
	elsewhere records.Addr = 0xffffffff81000050
)

// cell is a way with tracers attached, ready to be called.
type cell struct {
	way *dispatch.Way
	ctx *dispatch.Task
}

// wayOf is the way of a kernel. The tracers are those of the sample module, which no
// global function may lead to: without call_ops all calls go over the list.
func wayOf(kernel string) (dispatch.Kind, error) {
	if kernel == published.WithCallOps {
		return dispatch.Parse("call-ops")
	}
	return dispatch.Parse("list")
}

// newCell attaches tracers and counts one call.
func newCell(kernel string, relevant, irrelevant int) (*cell, counts, error) {
	kind, err := wayOf(kernel)
	if err != nil {
		return nil, counts{}, err
	}
	way, err := kind.New(dispatch.Config{Sites: []records.Addr{mine}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		return nil, counts{}, err
	}
	c := &cell{way: way, ctx: &dispatch.Task{}}
	if err := kind.Sample(c.way, 0, relevant, 1, irrelevant); err != nil {
		return nil, counts{}, err
	}
	var n dispatch.Counts
	c.ctx.Count(&n)
	c.way.Call(0, c.ctx)
	c.ctx.Count(nil)
	if c.ctx.Hits != uint64(relevant) {
		return nil, counts{}, fmt.Errorf("%s, %d relevant and %d irrelevant tracers: a call calls %d", kernel, relevant,
			irrelevant, c.ctx.Hits)
	}
	return c, counts{n.Loads, n.Walked, n.Called}, nil
}

// prepare makes a cell for each published row, and counts.
func (c *Config) prepare(costs []published.CallCost) (rows []*row, cells []*cell, err error) {
	for _, cost := range costs {
		base, _ := published.Untraced(costs, cost.Kernel)
		row := &row{CallCost: cost, Source: cmp.Or(c.Published, published.CallCosts.Source), PerCall: perCall(cost)}
		row.Overhead = row.PerCall - perCall(base)
		if cost.Calls == base.Calls { // one division is rounded less
			row.Overhead = float64(cost.TotalNS-base.TotalNS) / float64(cost.Calls)
		}
		cell, n, err := newCell(cost.Kernel, cost.Relevant, cost.Irrelevant)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", c.from(), cost.Line, err)
		}
		row.counts = n
		rows, cells = append(rows, row), append(cells, cell)
	}
	return rows, cells, nil
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

// time times all cells in turns.
func (c *Config) time(ctx context.Context, rows []*row, cells []*cell) error {
	each, err := clock.Turns(ctx, c.Repeats, len(cells), func(i int) float64 {
		return clock.Once(leastRepeat, chunk, func() {
			for range chunk {
				cells[i].way.Call(0, cells[i].ctx)
			}
		})
	})
	if err != nil {
		return err
	}
	for i, row := range rows {
		m, err := fit.Median(each[i])
		if err != nil {
			return err
		}
		row.live = &m
	}
	return nil
}
