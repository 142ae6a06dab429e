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
type Config struct {
	// Tables are the tables of what is known of each function. Default: all.
	Tables []tables.TableKind
	// Functions are the numbers of functions that are hooked, 1 to 262,144. Default: 1,
	// 16, 64, 256, 1024, 4096, 16384, 43871, 50000, 65536.
	Functions []int
	// Published is a file in place of the published throughputs.
	Published string
	// All is the number of functions that were hooked when those were taken. Default:
	// 43,871, which is from another run of the same bench in the same year.
	All int
	// NoTime leaves times out: the rows are the same bytes on every machine.
	NoTime bool
	// Repeats is the number of measurements of each table, 6 or more. Default: 11.
	Repeats int
}

//go:embed metadata.experiment
var declared string

var spec = experiments.Spec[Config, *row]{
	Form: declared, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.NamedList(&c.Tables, "table", "`list` of tables of what is known of each function", tables.KindNames(),
			tables.ParseKind, tables.TableKind.String),
		experiments.Counts(&c.Functions, "functions", "1,16,64,256,1024,4096,16384,43871,50000,65536",
			"`list` of numbers of functions that are hooked", 1, maxFunctions),
		experiments.File(
			&c.Published,
			"published",
			"`file` in place of the published throughputs: CSV with bench, table, mps; tables are \"N fixed buckets\" and "+
				"resizable",
		),
		experiments.Count(
			&c.All,
			"all",
			43871,
			"`number` of functions that were hooked when those were taken; 43,871 is from another run of the same bench in "+
				"the same year",
			1,
			maxFunctions,
		),
		experiments.Flag(&c.NoTime, "no-time", "count only: the same bytes on every machine"),
		experiments.Repeats(&c.Repeats, 11, "`number` of measurements of each table, 6 or more"),
	}
}

// maxFunctions is more than a kernel has, and little enough that their text fits
// into memory.
const maxFunctions = 1 << 18

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
	if a.grown, err = countAll(ctx, c.All, s.Seed); err != nil {
		return nil, err
	}
	s.Asked = len(c.Functions) * len(c.Tables)
	for _, n := range c.Functions {
		f, err := functionsOf(ctx, n, s.Seed)
		if err != nil {
			return a.findings(), err
		}
		for _, k := range c.Tables {
			if err := ctx.Err(); err != nil {
				return a.findings(), err
			}
			r, err := c.look(ctx, k, f)
			if err == nil {
				err = s.Add(r)
			}
			if err != nil {
				return a.findings(), err
			}
		}
	}
	return a.findings(), nil
}
