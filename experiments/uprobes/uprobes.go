// SPDX-License-Identifier: Apache-2.0

// Package uprobes asks how many interrupts probes in programs send to every CPU, by release
// of the kernel and by the instruction at the probes' sites.
package uprobes

import (
	"cmp"
	"context"
	"fmt"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/kernels/uprobes"
)

// Config says which kernels, sites and processes are asked about.
// Its fields are the flags of uprobes.experiment.
type Config struct {
	Releases  []string // of x86-64 kernels
	Sites     []int
	Processes []int
	Program   string // an ELF file
	Published string
}

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: experiments.Text("uprobes/uprobes.experiment"), Fields: (*Config).fields, Check: (*Config).check, Measure: measure,
}).Experiment()

// maxSites is the most that is asked about, so that sums fit.
const maxSites = 1_000_000

func (c *Config) fields() []*choice.Field {
	release := choice.Kind[string]{
		Type: "release", Format: func(s string) string { return s },
		Parse: func(s string) (string, error) {
			_, err := uprobes.Of(s, uprobes.Other)
			return s, err
		},
	}
	return []*choice.Field{
		choice.List(&c.Releases, "releases", "6.12,6.18,7.1.3,7.1.9,7.2", "`list` of releases of x86-64 kernels", release),
	}
}

func (c *Config) check() error {
	if c.Program == "" {
		return nil
	}
	_, err := uprobes.ReadProgram(c.Program)
	return err
}

// row is some sites, hit by some processes, on one kernel.
type row struct {
	Release   string
	Insn      uprobes.Insn
	Sites     int
	Processes int
	Does      uprobes.Behaviour
	uprobes.Cost
	first bool // row of the release and instruction
}

// One is what one site and one process send.
func (r *row) One() uprobes.Cost { return r.Does.Cost(1, 1) }

// Predicted tells whether anybody knows what the kernel does there.
func (r *row) Predicted() bool { return r.Does.Known && !r.Does.Refused }

// Becomes is what the kernel does with the probe, in words.
func (r *row) Becomes() string {
	switch b := r.Does; {
	case !b.Known:
		return "unknown"
	case b.Refused:
		return "refused"
	case b.Replaces && b.Restores:
		return "call, and back"
	case b.Replaces:
		return "call, for good"
	}
	return "breakpoint"
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	readings, err := published.UprobeReadings.Read(s.Config.Published)
	if err != nil {
		return nil, err
	}
	cells, err := s.Config.cells()
	if err != nil {
		return nil, err
	}
	err = experiments.Each(ctx, s, cells, func(r *row) (*row, error) { return r, r.predict() })
	return s, cmp.Or(err, experiments.Beside(s, "published", readings))
}

// cells are the rows to be, with nothing predicted.
func (c *Config) cells() (out []*row, err error) {
	kinds := map[uprobes.Insn][]int{uprobes.Nop5: c.Sites, uprobes.Nop10: c.Sites}
	if c.Program != "" {
		p, err := uprobes.ReadProgram(c.Program)
		if err != nil {
			return nil, err
		}
		if len(p.Sites) > maxSites {
			return nil, fmt.Errorf("program %s: %d probes, want at most %d", p.File, len(p.Sites), maxSites)
		}
		clear(kinds)
		for i, n := range p.Count() {
			if n > 0 {
				kinds[uprobes.Insn(i)] = []int{n}
			}
		}
	}
	for _, release := range c.Releases {
		for i := range uprobes.InsnNames() {
			for n, sites := range kinds[uprobes.Insn(i)] {
				for m, processes := range c.Processes {
					out = append(out, &row{Release: release, Insn: uprobes.Insn(i), Sites: sites, Processes: processes,
						first: n == 0 && m == 0})
				}
			}
		}
	}
	return out, nil
}

// predict works a row out.
func (r *row) predict() (err error) {
	r.Does, err = uprobes.Of(r.Release, r.Insn)
	r.Cost = r.Does.Cost(r.Sites, r.Processes)
	return err
}
