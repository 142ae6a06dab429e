// SPDX-License-Identifier: Apache-2.0

// Package callopsalternatives asks what the designs would cost that could take the
// place of a pointer to the ops at each site.
package callopsalternatives

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says what is called, and beside what.
type Config struct {
	// Irrelevant are the numbers of tracers of another function, 0 to 10,000. Default:
	// 0, 100.
	Irrelevant []int
	// Functions is the number of functions that have a direct trampoline already when one
	// more is attached, 0 to 10,000,000. Default: 20,000.
	Functions int
	// NoTime leaves times out: the rows are the same bytes on every machine.
	NoTime bool
	// Repeats is the number of measurements of each, 6 or more. Default: 15.
	Repeats int
}

//go:embed call-ops-alternatives.experiment
var declared string

var spec = experiments.Spec[Config, *row]{
	Form: declared, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Counts(&c.Irrelevant, "irrelevant", "0,100",
			"`list` of numbers of tracers of another function", 0, 10_000),
		experiments.Count(&c.Functions, "functions", 20_000,
			"`number` of functions that have a direct trampoline already when one more is attached", 0, 10_000_000),
		experiments.Flag(&c.NoTime, "no-time", "count only: the same bytes on every machine"),
		experiments.Repeats(&c.Repeats, 15, "`number` of measurements of each, 6 or more"),
	}
}

// row is one design with some tracers.
type row struct {
	*design
	Users      users
	Irrelevant int
	Cost       dispatch.Counts
	functions  int
	Time       *fit.Estimate // nil with NoTime
	repeats    int
	verdict    explore.Verdict // "" where it cannot be asked
}

// FunctionBytesText and AllocationsText are figures of direct trampolines; "" where
// the design has none.
func (r *row) FunctionBytesText() string { return r.ofDirect(r.FunctionBytes) }
func (r *row) AllocationsText() string   { return r.ofDirect(r.allocations(r.functions)) }

func (r *row) ofDirect(n int) string {
	if !r.Kind.Direct {
		return ""
	}
	return fmt.Sprint(n)
}

var columns = slices.Concat(results.Columns[*row]{
	{Name: "design", Doc: "what a site leads to", Cell: func(r *row) any { return r.Name }},
	{
		Name: "users",
		Doc: "who is attached to the function: a callback, a direct trampoline out of branch range, or both; two " +
			"callbacks where there are no trampolines",
		Cell: func(r *row) any { return r.Users.String() },
	},
	{Name: "irrelevant", Kind: results.Integer,
		Doc: "tracers of another function", Cell: func(r *row) any { return r.Irrelevant }},
	{Name: "loads", Kind: results.Integer,
		Doc: "objects that a call reads on its way", Cell: func(r *row) any { return r.Cost.Loads }},
	{Name: "hashes", Kind: results.Integer, Doc: "of these ways, lookups of an address in a hash",
		Cell: func(r *row) any { return r.Cost.Hashes }},
	{Name: "walked", Kind: results.Integer,
		Doc: "entries of lists that a call walks", Cell: func(r *row) any { return r.Cost.Walked }},
	{Name: "bytes_per_site", Kind: results.Integer, Doc: "memory at each site, or in its record, attached or not",
		Cell: func(r *row) any { return r.SiteBytes }},
	{Name: "bytes_per_function", Kind: results.Integer, Doc: "memory for each function with a direct trampoline",
		Cell: func(r *row) any { return results.If(r.Kind.Direct, r.FunctionBytes) }},
	{Name: "bytes_per_ops", Kind: results.Integer,
		Doc: "memory for each ops", Cell: func(r *row) any { return r.OpsBytes }},
	{Name: "allocations", Kind: results.Integer,
		Doc:  "allocations that can fail when one more function gets a direct trampoline, beside the trampoline and its ops",
		Cell: func(r *row) any { return results.If(r.Kind.Direct, r.allocations(r.functions)) }},
	{Name: "words", Kind: results.Integer,
		Doc:  "words that change one after the other when another tracer takes a function over",
		Cell: func(r *row) any { return r.Words }},
	{Name: "asked", Doc: "what the checker was asked (textpoke check); empty where it cannot be",
		Cell: func(r *row) any { return results.If(r.verdict != "", r.Checked.String()) }},
	{Name: "verdict", Doc: "is it safe? the checker's",
		Cell: func(r *row) any { return results.OrEmpty(string(r.verdict)) }},
}, clock.Columns("call", "time of a call on this machine, median of the "+
	"measurements", func(r *row) *fit.Estimate { return r.Time }),
	results.Columns[*row]{clock.Repeats("thousands of calls", func(r *row) int { return r.repeats })})

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	var rows []*row
	for i := range designs {
		for _, u := range designs[i].users() {
			for _, n := range c.Irrelevant {
				rows = append(rows, &row{design: &designs[i], Users: u, Irrelevant: n, functions: c.Functions})
			}
		}
	}
	s.Asked = len(rows)
	verdicts, err := askChecker(ctx)
	if err == nil {
		err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) {
			r.verdict = verdicts[r.Checked]
			return r, c.measure(ctx, r)
		})
	}
	a := &answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}, err
}

// Where the function is that is called, and that which nobody calls.
const (
	called    records.Addr = 0xffffffff81001000
	elsewhere records.Addr = 0xffffffff81002000
)

// measure attaches, counts one call, and times many.
func (c *Config) measure(ctx context.Context, row *row) error {
	w, err := row.Kind.New(dispatch.Config{Sites: []records.Addr{called}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		return err
	}
	var ops []*tracers.Ops
	if row.Users != callback {
		o := tracers.NewOps("first", tracers.CountHits, 0, 0)
		if row.Kind.Direct {
			o.Func, o.Direct = nil, tracers.CountHits
		}
		ops = append(ops, o)
	}
	if row.Users != direct {
		ops = append(ops, tracers.NewOps("callback", tracers.CountHits, 0, 0))
	}
	for range row.Irrelevant {
		ops = append(ops, tracers.NewOps("irrelevant", tracers.CountHits, 0, 1))
	}
	for _, o := range ops {
		if err := w.Attach(o); err != nil {
			return fmt.Errorf("%s: %w", row.Name, err)
		}
	}
	row.Cost = w.Cost(0)
	if c.NoTime {
		return ctx.Err()
	}
	task := &dispatch.Task{}
	row.repeats = c.Repeats
	row.Time, err = clock.Time(ctx, c.Repeats, callsAtOnce, func() {
		for range callsAtOnce {
			w.Call(0, task)
		}
	})
	return err
}

// callsAtOnce is between two looks at the clock, which take as long as some calls.
const callsAtOnce = 1 << 10

// askChecker explores what the designs can be asked.
func askChecker(ctx context.Context) (map[checked]explore.Verdict, error) {
	out := map[checked]explore.Verdict{}
	for i := range designs {
		which := designs[i].Checked
		if which.bug == "" || out[which] != "" {
			continue
		}
		bug, err := museum.Named(which.bug)
		if err != nil {
			return nil, err
		}
		m, err := bug.Model(which.fixed)
		if err != nil {
			return nil, err
		}
		r, err := explore.Explore(ctx, m, explore.Options{})
		if err != nil {
			return nil, err
		}
		out[which] = r.Verdict
	}
	return out, nil
}
