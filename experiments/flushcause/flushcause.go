// SPDX-License-Identifier: Apache-2.0

// Package flushcause asks what address order costs: a batch closes when it is
// full, and when the next address is lower than the last.
package flushcause

import (
	"context"
	_ "embed"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says what is counted: each table in each order with each vector.
type Config struct {
	// Records are the tables of records. Default: those of real kernels, and three
	// generated ones whose groups do not ascend.
	Records []string
	// Kallsyms is the file with the addresses for a list of functions without.
	Kallsyms string
	// Buffers are the sizes of the vector, in slots. Default: 128, 170, 256, dynamic.
	Buffers []sched.Buffer
	// Roles are the CPUs of the machine. Default: 8, all busy.
	Roles []cpus.Role
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "flush-cause",
	Short: "what does address order cost? every order, per cause, and what one sort would save",
	Examples: []string{
		"flush-cause --out flush-cause",
		"flush-cause --records /sys/kernel/tracing/available_filter_functions_addrs",
		"flush-cause --records gen:n=45000,groups=64,order=grouped --buffer 256 --format csv",
	},
	Prose: prose, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

// Run answers the question.
func Run(ctx context.Context, c Config, lab experiments.Lab) (*experiments.Answer, error) {
	return spec.Run(ctx, c, lab)
}

// Validate tells which field Run would refuse.
func (c Config) Validate() error { return spec.Validate(c) }

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Tables(
			&c.Records,
			"`table` of records: a built-in one, a file or gen:...; repeatable (default: those of real kernels, and three "+
				"generated ones)",
		),
		experiments.File(&c.Kallsyms, "kallsyms", "`file` with the addresses for a list of functions without"),
		experiments.Buffers(&c.Buffers, "128,170,256,dynamic"),
		experiments.Roles(&c.Roles, "8", "`machine`"),
	}
}

// generated are tables whose groups do not ascend: as few as kernels have, many,
// and one whose records nobody has sorted.
var generated = []string{
	"gen:n=45000,groups=3,order=grouped",
	"gen:n=45000,groups=64,order=grouped,modules=0.1",
	"gen:n=45000,order=random",
}

func (c *Config) sources() (out []string) {
	if len(c.Records) > 0 {
		return c.Records
	}
	for _, b := range records.Builtins() {
		out = append(out, b.Name)
	}
	return append(out, generated...)
}

// protocol queues in a vector on every instruction set: what one kernel does, and
// what the order would cost elsewhere.
const protocol = "breakpoint"

var orders = []sched.Ordering{sched.Table, sched.Sorted, sched.Shuffled, sched.Descending}

// row is one combination, and what it takes when the same patches are sorted.
type row struct {
	sim.PlanRow
	Source string
	sorted int // rounds
}

// Saved is what one sort would save, in rounds.
func (r *row) Saved() int { return r.Rounds - r.sorted }

var columns = results.Columns[*row]{
	{Name: "source", Doc: "table of records", Cell: func(r *row) any { return r.Source }},
	{Name: "arch", Doc: "instruction set", Cell: func(r *row) any { return r.Arch.Traits().Name }},
	{Name: "order", Doc: "order in which patches are queued", Cell: func(r *row) any { return r.Order.String() }},
	{Name: "buffer", Doc: "slots of the vector that they are queued in",
		Cell: func(r *row) any { return r.Buffer.String() }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r *row) any { return cpus.FormatRoles(r.Roles) }},
	{Name: "groups", Kind: results.Integer,
		Doc: "runs of records that are sorted inside", Cell: func(r *row) any { return r.Groups }},
	{Name: "patches", Kind: results.Integer, Doc: "records changed", Cell: func(r *row) any { return r.Patches }},
	{Name: "flushes", Kind: results.Integer, Doc: "batches", Cell: func(r *row) any { return r.Flushes }},
	{Name: "flush_full", Kind: results.Integer,
		Doc: "batches closed because no slot was left", Cell: func(r *row) any { return r.FlushFull }},
	{Name: "flush_order", Kind: results.Integer, Doc: "batches closed because the next address was lower",
		Cell: func(r *row) any { return r.FlushOrder }},
	{Name: "flush_final", Kind: results.Integer, Detail: true, Doc: "batches closed because nothing followed",
		Cell: func(r *row) any { return r.FlushFinal }},
	{Name: "rounds", Kind: results.Integer,
		Doc: "requests to all other CPUs to synchronise", Cell: func(r *row) any { return r.Rounds }},
	{Name: "ipis_per_cpu", Kind: results.Integer, Doc: "interrupts that each CPU but the sender takes",
		Cell: func(r *row) any { return r.IPIsPerCPU }},
	{Name: "ipis", Kind: results.Integer, Detail: true, Doc: "interrupts that all CPUs take together",
		Cell: func(r *row) any { return r.IPIs }},
	{Name: "rounds_sorted", Kind: results.Integer, Detail: true, Doc: "rounds when the same patches are sorted first",
		Cell: func(r *row) any { return r.sorted }},
	{Name: "rounds_saved", Kind: results.Integer,
		Doc: "rounds that one sort would save", Cell: func(r *row) any { return r.Saved() }},
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	sources, err := experiments.Open(ctx, c.sources(), records.Options{Kallsyms: c.Kallsyms})
	if err != nil {
		return nil, err
	}
	var points []sim.Config
	for _, src := range sources {
		for _, order := range orders {
			for _, buffer := range c.Buffers {
				points = append(points, sim.Config{
					Arch: src.Arch, Protocol: protocol, Table: src.Table, Roles: c.Roles, Seed: s.Seed, Buffer: buffer, Order: order,
				})
			}
		}
	}
	err = experiments.Each(ctx, s, points, func(c sim.Config) (*row, error) { return count(ctx, c) })
	a := answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}, err
}

// count counts a combination, and the same one sorted.
func count(ctx context.Context, c sim.Config) (*row, error) {
	r := &row{Source: strings.TrimSpace(c.Table.Name())}
	for _, order := range []sched.Ordering{sched.Sorted, c.Order} {
		c.Order = order
		j, err := sim.NewJob(c)
		if err != nil {
			return r, err
		}
		r.sorted = r.Rounds // on the second way round
		if r.PlanRow, err = j.Count(ctx); err != nil {
			return r, err
		}
	}
	return r, nil
}
