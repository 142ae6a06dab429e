// SPDX-License-Identifier: Apache-2.0

// Package callopsalternatives asks what the designs would cost that could take the
// place of a pointer to the ops at each site.
package callopsalternatives

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// Config says what is called, and beside what.
// Its fields are the flags of call-ops-alternatives.experiment.
type Config struct {
	Irrelevant []int
	Functions  int
	NoTime     bool
	Repeats    int
}

//go:embed call-ops-alternatives.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Measure: measure,
}).Experiment()

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
func (r *row) AllocationsText() string   { return r.ofDirect(r.AllocationsFor()) }

// AllocationsFor are those of one more function.
func (r *row) AllocationsFor() int { return r.allocations(r.functions) }

func (r *row) ofDirect(n int) string {
	if !r.Direct {
		return ""
	}
	return fmt.Sprint(n)
}

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
			r.verdict = verdicts[r.Checked()]
			return r, c.measure(ctx, r)
		})
	}
	a := &answer{s}
	return &experiments.Findings{Report: a}, err
}

// Where the function is that is called, and that which nobody calls.
const (
	called    records.Addr = 0xffffffff81001000
	elsewhere records.Addr = 0xffffffff81002000
)

// measure attaches, counts one call, and times many.
func (c *Config) measure(ctx context.Context, row *row) error {
	kind, err := row.kind()
	if err != nil {
		return err
	}
	w, err := kind.New(dispatch.Config{Sites: []records.Addr{called}, Elsewhere: []records.Addr{elsewhere}})
	if err != nil {
		return err
	}
	var ops []*tracers.Ops
	if row.Users != callback {
		o := tracers.NewOps("first", tracers.CountHits, 0, 0)
		if row.Direct {
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
		which := designs[i].Checked()
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
