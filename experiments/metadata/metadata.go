// SPDX-License-Identifier: Apache-2.0

// Package metadata asks which table a global trampoline should keep what it knows
// of each function in: what lookups do, which is counted, how long they take on the
// machine that it runs on, and what published throughputs say of it.
package metadata

import (
	"context"
	_ "embed"
	"slices"

	tables "github.com/textpoke/textpoke/tracers/metadata"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
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
	Form: declared, Columns: columns, Fields: (*Config).fields, Measure: measure,
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

func (r *row) timed() bool { return r.Times != nil }

var columns = slices.Concat(results.Columns[*row]{
	{Name: "table", Doc: "what is searched", Cell: func(r *row) any { return r.Kind.String() }},
	{Name: "functions", Kind: results.Integer,
		Doc: "functions that are hooked", Cell: func(r *row) any { return r.Functions }},
}, results.Columns[*row]{
	{Name: "comparisons_mean", Kind: results.Number,
		Doc:  "comparisons of addresses until a function is found, mean over all of them; empty for Go's own maps",
		Cell: func(r *row) any { return r.Counts.Comparisons }},
	{Name: "comparisons_max", Kind: results.Integer,
		Doc: "and the most", Cell: func(r *row) any { return r.Counts.Most }},
	{Name: "loads_mean", Kind: results.Number,
		Doc:  "loads that each wait for the one before, to the record's contents",
		Cell: func(r *row) any { return r.Counts.Loads }},
	{Name: "lines_mean", Kind: results.Number,
		Doc:  "cache lines of 64 bytes that they touch and that other functions' lookups need not",
		Cell: func(r *row) any { return r.Counts.Lines }},
	{Name: "bytes_per_function", Kind: results.Number,
		Doc:  "memory of the table, without the records, over the functions",
		Cell: func(r *row) any { return r.Counts.Bytes }},
}.When(func(r *row) bool { return r.Counts != nil }), results.Columns[*row]{
	{Name: "heap_bytes_per_function", Kind: results.Number, Detail: true,
		Doc: "memory that the allocator gave for table and records, and for padding the text; measured, from 1,000 " +
			"functions on: what else is on the heap hides that of fewer",
		Cell: func(r *row) any { return results.If(r.Functions >= 1000, r.Times.Heap) }},
}.When((*row).timed), clock.Columns("hot",
	"time of a lookup when one function is called again and again, median of the measurements on this machine",
	func(r *row) *fit.Estimate { return &r.Times.Hot }).When((*row).timed), results.Columns[*row]{
	{Name: "hot_of_one", Kind: results.Number,
		Doc:  "that time over the time in a table of the same kind with one function, taken in turns",
		Cell: func(r *row) any { return r.Times.OfOne.Value }},
	{Name: "hot_of_one_low", Kind: results.Number, Detail: true, Doc: "lower end of its interval",
		Cell: func(r *row) any { return r.Times.OfOne.Low }},
	{Name: "hot_of_one_high", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *row) any { return r.Times.OfOne.High }},
	{Name: "random_ns", Kind: results.Number, Doc: "time of a lookup when all functions are called in random order",
		Cell: func(r *row) any { return r.Times.Random.Value }},
	{Name: "random_low_ns", Kind: results.Number,
		Doc: "lower end of its interval", Cell: func(r *row) any { return r.Times.Random.Low }},
	{Name: "random_high_ns", Kind: results.Number,
		Doc: "and its upper end", Cell: func(r *row) any { return r.Times.Random.High }},
	clock.Repeats("thousands of lookups", func(r *row) int { return r.repeats }),
}.When((*row).timed))

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
