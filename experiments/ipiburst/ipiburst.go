// SPDX-License-Identifier: Apache-2.0

// Package ipiburst asks how many interrupts switching the function tracer costs
// each CPU, with vectors of fixed size, with one that grows, and with one batch
// for everything, and takes the measurements of 2019 apart.
package ipiburst

import (
	"context"
	_ "embed"
	"fmt"
	"io"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says what is counted.
type Config struct {
	// Arches are the instruction sets. Default: all.
	Arches []isa.Arch
	// Buffers are the sizes of the vector, in slots. Default: 170, 256, dynamic.
	Buffers []sched.Buffer
	// Roles are the CPUs of the machine. Default: 8, all busy.
	Roles []cpus.Role
	// Records is the table of records beside those of real kernels. Default: 45,000
	// sorted ones.
	Records string
	// Published is a file in place of the published counts of interrupts.
	Published string
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "ipi-burst",
	Short: "how many interrupts does enabling and disabling cost each CPU? and the measurements of 2019, taken apart",
	Examples: []string{
		"ipi-burst --out ipi-burst",
		"ipi-burst --arch x86_64 --buffer 128,1024,dynamic --cpus 64 --format csv",
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

// generated is as many functions as the estimates of 2019 are about.
const generated = "gen:n=45000,order=sorted"

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Arches(&c.Arches),
		experiments.Buffers(&c.Buffers, "170,256,dynamic"),
		experiments.Roles(&c.Roles, "8", "`machine`"),
		experiments.Records(&c.Records, generated,
			"`table` of records beside those of real kernels: a built-in one, a file or gen:..."),
		experiments.File(&c.Published, "published",
			"`file` in place of the published counts: CSV with patching, action, cpu, before, after, delta, source"),
	}
}

// row is one combination.
type row struct {
	sim.PlanRow
	Source string
}

// ArchName is the instruction set's.
func (r *row) ArchName() string { return r.Arch.Traits().Name }

// Vector is its size; "" where nothing is queued.
func (r *row) Vector() string {
	if !r.Buffered {
		return ""
	}
	return r.Buffer.String()
}

// Batches is how often the vector is flushed; "" where nothing is queued.
func (r *row) Batches() string {
	if !r.Buffered {
		return ""
	}
	return fmt.Sprint(r.Flushes)
}

var columns = results.Columns[*row]{
	{Name: "source", Doc: "table of records", Cell: func(r *row) any { return r.Source }},
	{Name: "arch", Doc: "instruction set", Cell: func(r *row) any { return r.ArchName() }},
	{Name: "protocol", Doc: "how text is changed: native is what the current kernel does",
		Cell: func(r *row) any { return r.Protocol }},
	{Name: "buffer", Doc: "slots of the vector that patches are queued in; empty where there is none",
		Cell: func(r *row) any { return results.OrEmpty(r.Vector()) }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r *row) any { return cpus.FormatRoles(r.Roles) }},
	{Name: "patches", Kind: results.Integer, Doc: "records changed", Cell: func(r *row) any { return r.Patches }},
	{Name: "flushes", Kind: results.Integer, Doc: "batches; empty where nothing is queued",
		Cell: func(r *row) any { return results.If(r.Buffered, r.Flushes) }},
	{Name: "rounds", Kind: results.Integer,
		Doc:  "requests to all other CPUs to synchronise, for enabling and again for disabling",
		Cell: func(r *row) any { return r.Rounds }},
	{Name: "ipis_per_cpu", Kind: results.Integer, Doc: "interrupts that each CPU but the sender takes, each time",
		Cell: func(r *row) any { return r.IPIsPerCPU }},
	{Name: "ipis", Kind: results.Integer,
		Doc: "interrupts that all CPUs take together, each time", Cell: func(r *row) any { return r.IPIs }},
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	counts, err := published.Interrupts.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	a := answer{Study: s}
	readings, err := published.Readings(counts)
	if err != nil {
		return nil, err
	}
	if a.Measured, err = split(readings); err != nil {
		return nil, err
	}
	jobs, err := s.Config.jobs(ctx, s.Seed)
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, jobs, func(j *sim.Job) (*row, error) {
		count, err := j.Count(ctx)
		return &row{PlanRow: count, Source: j.Table.Name()}, err
	})
	return &experiments.Findings{
		Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}},
		Documents: []results.Document{
			{Name: "interrupts.txt", Write: func(w io.Writer) error { return writeInterrupts(w, a.Measured) }},
			experiments.CSV("split", splitColumns, a.Measured),
		},
	}, err
}

// jobs are the combinations: each architecture's own kernel and the other table,
// with what the kernel does, and with breakpoints in vectors and in one batch.
func (c *Config) jobs(ctx context.Context, seed uint64) (out []*sim.Job, err error) {
	for _, arch := range c.Arches {
		own := records.DefaultFor(arch.Traits().Name)
		sources, err := experiments.Open(ctx, []string{own, c.Records}, records.Options{})
		if err != nil {
			return nil, err
		}
		for _, src := range sources {
			if t := src.Table.Arch(); t != "" && t != arch.Traits().Name {
				continue
			}
			for _, p := range protocolsOf(arch.Traits()) {
				buffers := c.Buffers
				if poke.Named(p, arch.Traits()).Batching != poke.Buffered {
					buffers = []sched.Buffer{sched.Dynamic}
				}
				for _, b := range buffers {
					j, err := sim.NewJob(sim.Config{Arch: arch, Protocol: p, Table: src.Table, Roles: c.Roles, Buffer: b, Seed: seed})
					if err != nil {
						return nil, err
					}
					out = append(out, j)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no combination is left to do")
	}
	return out, nil
}

// The protocol that queues in a vector, and the one that has one batch.
const (
	inVectors = "breakpoint"
	global    = "breakpoint-global"
)

// protocolsOf leaves out what native is already.
func protocolsOf(t isa.Traits) []string {
	if poke.Named(poke.Native, t).Batching == poke.Buffered {
		return []string{poke.Native, global}
	}
	return []string{poke.Native, inVectors, global}
}
