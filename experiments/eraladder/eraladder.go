// SPDX-License-Identifier: Apache-2.0

// Package eraladder asks how each architecture has changed running code over
// time, from stop_machine to today: one row an era, counted by compiling what
// kernels of that era did.
package eraladder

import (
	"context"
	_ "embed"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// Config says which eras are compiled.
type Config struct {
	// Arches are the instruction sets. Default: all.
	Arches []isa.Arch
	// Sites are the numbers of sites that one update changes. Default: 1, 256, 45000.
	Sites []int
	// Roles are the CPUs of the machine. Default: 8, all busy.
	Roles []cpus.Role
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "era-ladder",
	Short: "how did each architecture do it over time? from stop_machine to today",
	Examples: []string{
		"era-ladder --out era-ladder",
		"era-ladder --arch riscv64 --sites 45000 --format csv",
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
		experiments.Arches(&c.Arches),
		experiments.Counts(&c.Sites, "sites", "1,256,45000",
			"`list` of numbers of sites that one update changes", 1, records.MaxRecords),
		experiments.Roles(&c.Roles, "8", "`machine`"),
	}
}

// row is one era with a number of sites.
type row struct {
	*era
	Sites int
	sim.PlanRow
}

// ArchName is the instruction set's.
func (r *row) ArchName() string { return r.era.Arch.Traits().Name }

// wanted is how many rounds follow from the source.
func (r *row) wanted() int { return formulas[r.Formula](r.Sites) }

var columns = results.Columns[*row]{
	{Name: "arch", Doc: "instruction set", Cell: func(r *row) any { return r.ArchName() }},
	{Name: "client", Doc: "who changes the sites", Cell: func(r *row) any { return r.Client }},
	{Name: "from", Doc: "first release that does it like this; empty where earlier ones were not looked at",
		Cell: func(r *row) any { return results.OrEmpty(r.From) }},
	{Name: "to", Doc: "last one; empty where it lasts", Cell: func(r *row) any { return results.OrEmpty(r.To) }},
	{Name: "protocol", Doc: "what is compiled", Cell: func(r *row) any { return r.era.Protocol.Name }},
	{Name: "buffer", Doc: "slots of the vector, where there is one",
		Cell: func(r *row) any { return results.If(r.era.Buffer.Slots > 0, r.era.Buffer.String()) }},
	{Name: "sites", Kind: results.Integer,
		Doc: "sites that one update changes", Cell: func(r *row) any { return r.Sites }},
	{Name: "rounds", Kind: results.Integer,
		Doc: "requests to all other CPUs to synchronise", Cell: func(r *row) any { return r.Rounds }},
	{Name: "stops", Kind: results.Integer,
		Doc: "times that all CPUs stand still", Cell: func(r *row) any { return r.PlanRow.Stops }},
	{Name: "remote_fences", Kind: results.Integer,
		Doc:  "of the rounds, remote fences: interrupts that firmware may send, which /proc/interrupts then does not show",
		Cell: func(r *row) any { return results.If(r.era.Arch.Traits().MaskedRounds, r.Rounds) }},
	{Name: "ipis_per_cpu", Kind: results.Integer,
		Doc: "interrupts that each CPU but the sender takes, those that wake stoppers among them unless they are " +
			"counted apart from fences (riscv64)",
		Cell: func(r *row) any { return r.IPIsPerCPU }},
	{Name: "formula", Doc: "rounds for n sites, as they follow from the source",
		Cell: func(r *row) any { return r.Formula }},
	{Name: "formula_rounds", Kind: results.Integer, Detail: true, Doc: "what the formula gives",
		Cell: func(r *row) any { return r.wanted() }},
	{Name: "basis", Detail: true,
		Doc:  "source: read in the kernel's; commit: in a commit message or a mail; inferred: follows from something else",
		Cell: func(r *row) any { return r.Basis }},
	{Name: "source", Detail: true, Doc: "where the kernel does it, or who says so",
		Cell: func(r *row) any { return r.Source }},
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	all, err := eras()
	if err != nil {
		return nil, err
	}
	tables := map[int]*records.Table{}
	for _, n := range c.Sites {
		if tables[n], err = records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", n), records.Options{}); err != nil {
			return nil, err
		}
	}
	var rows []*row
	for i := range all {
		same := func(a isa.Arch) bool { return a.Traits().Name == all[i].Arch.Traits().Name }
		if !slices.ContainsFunc(c.Arches, same) {
			continue
		}
		for _, n := range c.Sites {
			rows = append(rows, &row{era: &all[i], Sites: n})
		}
	}
	err = experiments.Each(ctx, s, rows, func(r *row) (*row, error) {
		j, err := sim.NewJob(sim.Config{
			Arch: r.era.Arch, Plan: r.era.Protocol, Buffer: r.era.Buffer, Table: tables[r.Sites], Roles: c.Roles, Seed: s.Seed,
		})
		if err != nil {
			return nil, err
		}
		r.PlanRow, err = j.Count(ctx)
		return r, err
	})
	a := answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}},
		No: a.differ()}, err
}
