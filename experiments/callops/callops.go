// SPDX-License-Identifier: Apache-2.0

// Package callops asks whether a tracer of another function slows a call down, with
// a list of all tracers and with a literal at each site that names its own.
package callops

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// Config says which table is gone through, and what is held out.
type Config struct {
	// Published is a file in place of the published table.
	Published string
	// Hold are the numbers of tracers, the ones that vary: rows that are held out of the
	// fits and predicted. Default: 2, 100.
	Hold []int
	// NoTime leaves times out: the rows are the same bytes on every machine.
	NoTime bool
	// Repeats is the number of measurements of each row, 6 or more. Default: 15.
	Repeats int
}

//go:embed call-ops.experiment
var declared string

var spec = experiments.Spec[Config, *row]{
	Form: declared, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.File(
			&c.Published,
			"published",
			"`file` in place of the published table: CSV with kernel, block, relevant_tracers, irrelevant_tracers, calls, "+
				"total_ns, per_call_ns, overhead_ns",
		),
		experiments.Counts(&c.Hold, "hold", "2,100",
			"`list` of numbers of tracers, the ones that vary: rows that are held out of the fits and predicted", 0, maxTracers),
		experiments.Flag(&c.NoTime, "no-time", "time nothing: the same bytes on every machine"),
		experiments.Repeats(&c.Repeats, 15, "`number` of measurements of each row, 6 or more"),
	}
}

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

// traced and predicted tell whether the row has a path, and whether that has a line.
func (r *row) traced() bool    { return r.path != nil }
func (r *row) predicted() bool { return r.path != nil && r.path.line != nil }

var columns = slices.Concat(results.Columns[*row]{
	{Name: "kernel", Doc: "without_call_ops: the list function for every call; with_call_ops: a literal at the site",
		Cell: func(r *row) any { return r.Kernel }},
	{
		Name: "block",
		Doc:  "what varies: irrelevant0 and irrelevant1 the tracers of another function, relevant those of this one",
		Cell: func(r *row) any { return r.Block },
	},
	{Name: "relevant_tracers", Kind: results.Integer, Doc: "tracers of the function that is called",
		Cell: func(r *row) any { return r.Relevant }},
	{Name: "irrelevant_tracers", Kind: results.Integer,
		Doc: "tracers of another one", Cell: func(r *row) any { return r.Irrelevant }},
	{Name: "loads", Kind: results.Integer, Doc: "objects that one call reads because their address was read: exact",
		Cell: func(r *row) any { return r.counts.loads }},
	{Name: "walked", Kind: results.Integer, Doc: "entries of the list that it walks: exact",
		Cell: func(r *row) any { return r.counts.walked }},
	{Name: "called", Kind: results.Integer,
		Doc: "callbacks that it calls: exact", Cell: func(r *row) any { return r.counts.called }},
}, clock.Columns("live", "time of one call on this machine, median of the "+
	"measurements", func(r *row) *fit.Estimate { return r.live }),
	results.Columns[*row]{
		{Name: "published_ns", Kind: results.Number, Doc: "time of one call by the published total",
			Cell: func(r *row) any { return r.PerCall }},
	}, results.Columns[*row]{
		{Name: "overhead_ns", Kind: results.Number, Doc: "that less the same of an untraced call",
			Cell: func(r *row) any { return r.Overhead }},
		{Name: "path", Doc: "which line predicts it: literal, skip or call; empty where nobody traces the function",
			Cell: func(r *row) any { return r.path.name }},
		{Name: "held_out", Kind: results.Boolean,
			Doc: "whether the line does not know this row", Cell: func(r *row) any { return r.held }},
	}.When((*row).traced), results.Columns[*row]{
		{Name: "predicted_ns", Kind: results.Number, Doc: "what the line says; empty where there is none",
			Cell: func(r *row) any { return r.Prediction.Value }},
		{Name: "predicted_low_ns", Kind: results.Number,
			Doc:  "lower end of the interval that one more measurement falls into with 95 % confidence",
			Cell: func(r *row) any { return r.Prediction.Low }},
		{Name: "predicted_high_ns", Kind: results.Number,
			Doc: "and its upper end", Cell: func(r *row) any { return r.Prediction.High }},
		{Name: "error_percent", Kind: results.Number, Doc: "predicted less published, of published",
			Cell: func(r *row) any { return r.errorPercent() }},
	}.When((*row).predicted))

// errorPercent is how far the prediction is off.
func (r *row) errorPercent() any {
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
	a.paths = c.predict(all)
	if !c.NoTime {
		err = c.time(ctx, all, cells)
	}
	if err == nil {
		err = experiments.Each(ctx, s, all, func(r *row) (*row, error) { return r, nil })
	}
	return a.findings(), err
}
