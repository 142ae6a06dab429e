// SPDX-License-Identifier: Apache-2.0

// Package metadata asks which table a global trampoline should keep what it knows
// of each function in: what lookups do, which is counted, how long they take on the
// machine that it runs on, and what published throughputs say of it.
package metadata

import (
	"context"
	_ "embed"

	tables "github.com/textpoke/textpoke/tracers/metadata"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// Config says which tables are filled, and with how many functions.
// Its fields are the flags of metadata.experiment.
type Config struct {
	Tables    []tables.TableKind
	Functions []int
	Published string
	All       int
	NoTime    bool
	Repeats   int
}

//go:embed metadata.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.NamedList(&c.Tables, "table", "`list` of tables of what is known of each function", tables.KindNames(),
			tables.ParseKind, tables.TableKind.String),
	}
}

// row is one table with some functions in it.
type row struct {
	Kind      tables.TableKind
	Functions int
	Counts    *counts // nil for tables that do not say what they do
	Times     *times  // nil with NoTime
	repeats   int
}

// Heap is the memory of a function; empty where others' hides it.
func (r *row) Heap() any {
	if r.Times == nil || r.Functions < 1000 {
		return results.Empty
	}
	return r.Times.Heap
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	a := &answer{Study: s}
	var err error
	if a.Pairs, err = readPairs(c.Published); err != nil {
		return nil, err
	}
	if a.calls, err = published.MultiCallTimes.Read(""); err != nil {
		return nil, err
	}
	if a.Grown, err = countAll(ctx, c.All, s.Seed); err != nil {
		return nil, err
	}
	s.Asked = len(c.Functions) * len(c.Tables)
	for _, n := range c.Functions {
		f, err := functionsOf(ctx, n, s.Seed)
		if err != nil {
			return &experiments.Findings{Report: a}, err
		}
		for _, k := range c.Tables {
			if err := ctx.Err(); err != nil {
				return &experiments.Findings{Report: a}, err
			}
			r, err := c.look(ctx, k, f)
			if err == nil {
				err = s.Add(r)
			}
			if err != nil {
				return &experiments.Findings{Report: a}, err
			}
		}
	}
	return &experiments.Findings{Report: a}, nil
}
