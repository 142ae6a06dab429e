// SPDX-License-Identifier: Apache-2.0

// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// Config says which table is gone through, and what is held out.
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
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Measure: measure,
}).Experiment()

// maxTracers is as many as one row may have.
const maxTracers = 10_000

// check refuses tables with rows of too many tracers.
func (c *Config) check(rows []published.CallCost) error {
	for _, row := range rows {
		if n := row.Relevant + row.Irrelevant; n > maxTracers {
			return fmt.Errorf("%s:%d: %d tracers: want %d at most", c.from(), row.Line, n, maxTracers)
		}
	}
	return nil
}

// from is what the table is called in messages.
func (c *Config) from() string {
	if c.Published == "" {
		return published.CallCosts.Name
	}
	return c.Published
}

// row is one of the published ones, three ways.
type row struct {
	published.CallCost
	counts     counts
	live       *fit.Estimate // of one call, in ns; nil with NoTime
	PerCall    float64       // published total over published calls
	Overhead   float64       // that without the kernel's untraced call
	path       *path         // nil: nobody traces the function
	held       bool
	Prediction fit.Estimate // of the overhead
}

// counts are what one call takes.
type counts struct{ loads, walked, called int64 }

// Walked is how many entries of the list a call walks.
func (r *row) Walked() int64 { return r.counts.walked }

// predicted tells whether the row has a path, and that a line.
func (r *row) predicted() bool { return r.path != nil && r.path.Line != nil }

// ErrorPercent is how far the prediction is off.
func (r *row) ErrorPercent() any {
	if r.Overhead == 0 {
		return results.Empty
	}
	return 100 * (r.Prediction.Value/r.Overhead - 1)
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	costs, err := published.CallCosts.Read(c.Published)
	if err != nil {
		return nil, err
	}
	if err := c.check(costs); err != nil {
		return nil, err
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
	return a.findings(), errors.Join(err, experiments.Beside(s, "fits", a.lines()))
}
