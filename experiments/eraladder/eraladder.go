// Package eraladder asks how each architecture has changed running code over
// time, from stop_machine to today: one row an era, counted by compiling what
// kernels of that era did.
package eraladder

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

const (
	name     = "era-ladder"
	question = "How did each architecture change running code over time? From stop_machine to today: how many rounds of interrupts, " +
		"standstills and remote fences did n sites take in each era?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "how did each architecture do it over time? from stop_machine to today",
	About: "era-ladder compiles what the kernels of each era did, architecture by architecture and client by\n" +
		"client (function tracer, jump labels), for some numbers of sites, and counts the plan: rounds,\n" +
		"standstills, remote fences, interrupts per CPU. Each row has its releases and their source, and is\n" +
		"held against the formula that follows from that source.",
	Examples: []string{
		"era-ladder --out era-ladder",
		"era-ladder --arch riscv64 --sites 45000 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Arches(&r.arches))
		experiments.Register(f, experiments.Counts(&r.sites, "sites", "1,256,45000", "`list` of numbers of sites that one update changes", 1, records.MaxRecords))
		experiments.Register(f, experiments.Roles(&r.roles, "8", "`machine`"))
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	arches []isa.Arch
	sites  []int
	roles  []cpus.Role
}

// row is one era with a number of sites.
type row struct {
	*era
	sites int
	sim.PlanRow
}

// fences is how many of the rounds are remote fences, which the firmware may send.
func (r *row) fences() any {
	if !r.era.Arch.Traits().MaskedRounds {
		return results.Empty
	}
	return r.Rounds
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "arch", Doc: "instruction set"},
		{Name: "client", Doc: "who changes the sites"},
		{Name: "from", Doc: "first release that does it like this; empty where earlier ones were not looked at"},
		{Name: "to", Doc: "last one; empty where it lasts"},
		{Name: "protocol", Doc: "what is compiled"},
		{Name: "buffer", Doc: "slots of the vector, where there is one"},
		{Name: "sites", Doc: "sites that one update changes"},
		{Name: "rounds", Doc: "requests to all other CPUs to synchronise"},
		{Name: "stops", Doc: "times that all CPUs stand still"},
		{Name: "remote_fences", Doc: "of the rounds, remote fences: interrupts that firmware may send, which /proc/interrupts then does not show"},
		{Name: "ipis_per_cpu", Doc: "interrupts that each CPU but the sender takes, those that wake stoppers among them unless they are counted apart from fences (riscv64)"},
		{Name: "formula", Doc: "rounds for n sites, as they follow from the source"},
		{Name: "formula_rounds", Detail: true, Doc: "what the formula gives"},
		{Name: "basis", Detail: true, Doc: "source: read in the kernel's; commit: in a commit message or a mail; inferred: follows from something else"},
		{Name: "source", Detail: true, Doc: "where the kernel does it, or who says so"},
	}}
}

func (r *row) cells() []any {
	text := func(s string) any {
		if s == "" {
			return results.Empty
		}
		return s
	}
	buffer := ""
	if r.era.Buffer.Slots > 0 {
		buffer = r.era.Buffer.String()
	}
	return []any{
		r.era.Arch.Traits().Name, r.Client, text(r.From), text(r.To), r.era.Protocol.Name, text(buffer), r.sites,
		r.Rounds, r.PlanRow.Stops, r.fences(), r.IPIsPerCPU, r.Formula, formulas[r.Formula](r.sites), r.Basis, r.Source,
	}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	all, err := eras()
	if err != nil {
		return nil, err
	}
	a := &answer{sites: r.sites}
	tables := map[int]*records.Table{}
	for _, n := range r.sites {
		if tables[n], err = records.Open(ctx, fmt.Sprintf("gen:n=%d,order=sorted", n), records.Options{}); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if !asked(r.arches, all[i].Arch) {
			continue
		}
		a.eras++
		for _, n := range r.sites {
			row := &row{era: &all[i], sites: n}
			j, err := sim.NewJob(sim.Config{
				Arch: all[i].Arch, Plan: all[i].Protocol, Buffer: all[i].Buffer, Table: tables[n], Roles: r.roles, Seed: lab.Seed,
			})
			if err != nil {
				return a.answer(), err
			}
			if row.PlanRow, err = j.Count(ctx); err != nil {
				return a.answer(), err
			}
			a.rows = append(a.rows, row)
			if err := lab.Add(row.cells()...); err != nil {
				return a.answer(), err
			}
		}
	}
	return a.answer(), nil
}

func asked(arches []isa.Arch, a isa.Arch) bool {
	for _, b := range arches {
		if a.Traits().Name == b.Traits().Name {
			return true
		}
	}
	return false
}
