// SPDX-License-Identifier: Apache-2.0

// Package trigger asks what a program costs each call of a traced function by the
// way it is attached, and whether a published table bears out what its own text
// says of it.
package trigger

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// Config says which tables are read, and what counts as about the same.
// Its fields are the flags of trigger.experiment.
type Config struct {
	Published     string
	PublishedRuns string
	Margin        float64 // points of throughput
}

//go:embed trigger.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.One(&c.Margin, "margin", "2.5",
			"`points` of throughput by which a claim in per cent may be off and still hold; "+
				"claims are multiples of 5, so that 2.5 is nearest", experiments.Number("points above 0, up to 50",
				func(v float64) bool { return v > 0 && v <= 50 })),
	}
}

// loops are the mechanisms that attach nothing: loops to take off, or of another
// kind (tools/testing/selftests/bpf/benchs/bench_trigger.c, Linux 6.10 and later).
var loops = map[string]bool{"usermode-count": true, "syscall-count": true, published.KernelCount: true}

// row is one way to attach.
type row struct {
	published.Trigger
	CallNS float64 // of one call, less the loop; 0 for the loops
	loop   bool
	Runs   spread
	known  bool // there are runs of it
	ApartP float64
}

// Attached tells whether it is no loop.
func (r *row) Attached() bool { return !r.loop }

// Apart is by how much the one run is off the others' mean, in per cent.
func (r *row) Apart() float64 { return 100 * (r.MPS/r.Runs.Mean - 1) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	triggers, err := published.Triggers.Read(c.Published)
	if err != nil {
		return nil, err
	}
	runs, err := published.TriggerRuns.Read(c.PublishedRuns)
	if err != nil {
		return nil, err
	}
	if len(runs) < 3 {
		return nil, fmt.Errorf("--published-runs %s: %d runs say nothing of how they spread, want 3 or more", c.PublishedRuns,
			len(runs))
	}
	a := &answer{Study: s, RunCount: len(runs)}
	rows, err := c.rows(triggers, runs)
	if err != nil {
		return nil, err
	}
	claims, err := c.judge(triggers, runs)
	if err != nil {
		return nil, err
	}
	if err := experiments.Beside(s, "claims", claims); err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) { return r, nil })
	return &experiments.Findings{Report: a}, err
}

// rows takes the loop off, and holds both tables against each other.
func (c *Config) rows(triggers []published.Trigger, runs []published.TriggerRun) (out []*row, err error) {
	base := find(triggers, published.KernelCount)
	if base == nil {
		return nil, fmt.Errorf("%s: no row %s, whose time is taken off the others'", c.from(), published.KernelCount)
	}
	var p []float64
	for _, t := range triggers {
		row := &row{Trigger: t, loop: loops[t.Mechanism]}
		if row.CallNS = t.NS() - base.NS(); !row.loop && row.CallNS <= 0 {
			return nil, fmt.Errorf(
				"%s:%d: %s %v: is not slower than %s, %v on line %d, which does the same with nobody attached",
				c.from(),
				t.Line,
				t.Mechanism,
				t.MPS,
				base.Mechanism,
				base.MPS,
				base.Line,
			)
		}
		if row.known = has(runs, t.Mechanism); row.known {
			if row.Runs, row.ApartP, err = another(runs, t); err != nil {
				return nil, err
			}
			p = append(p, row.ApartP)
		}
		out = append(out, row)
	}
	share(out, p)
	return out, nil
}

// from is what the table is called in messages.
func (c *Config) from() string {
	if c.Published == "" {
		return published.Triggers.Name
	}
	return c.Published
}

// find is the row of a mechanism; nil if there is none.
func find(triggers []published.Trigger, mechanism string) *published.Trigger {
	return experiments.Find(triggers, func(t *published.Trigger) bool { return t.Mechanism == mechanism })
}
