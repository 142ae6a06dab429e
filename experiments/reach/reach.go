// SPDX-License-Identifier: Apache-2.0

// Package reach asks which sites can call a trampoline themselves, and which need
// a way round, by how far from the text the trampoline lies.
package reach

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

// Config says which sites are asked, and from where.
// Its fields are the flags of reach.experiment.
type Config struct {
	Arches    []isa.Arch
	Records   []string
	Kallsyms  string
	Distances []uint64 // of the trampoline from the text, in bytes
}

//go:embed reach.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Measure: measure,
}).Experiment()

// row is one place of the trampoline.
type row struct {
	Source   string
	Arch     string
	Limit    published.Reach
	Below    bool
	Distance uint64
	count
	first bool // table of its instruction set
}

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"contiguous_share": func(r *row) any { return results.If(r.Limit.From == published.FromSite, r.Even) },
}

// Side is where the trampoline lies.
func (r *row) Side() string {
	if r.Below {
		return "below"
	}
	return "above"
}

// Share is the part of the sites that calls directly.
func (r *row) Share() float64 {
	if r.Sites == 0 {
		return 0
	}
	return float64(r.Direct) / float64(r.Sites)
}

// EvenShare is what it would be if sites lay evenly; "" where range does not count
// from sites.
func (r *row) EvenShare() string {
	if r.Limit.From != published.FromSite {
		return ""
	}
	return results.Fixed(3, r.Even)
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	limits, err := published.Reaches.Read("")
	if err != nil {
		return nil, err
	}
	texts, err := s.Config.texts(ctx, limits)
	if err != nil {
		return nil, err
	}
	type point struct {
		*text
		place
	}
	var points []point
	for _, x := range texts {
		for _, p := range x.places(s.Config.Distances) {
			points = append(points, point{x, p})
		}
	}
	err = experiments.Each(ctx, s, points, func(p point) (*row, error) {
		n, err := p.text.count(p.at)
		return &row{Source: p.Name(), Arch: p.text.Arch.Traits().Name, Limit: p.Limit, Below: p.Below, Distance: p.Distance,
			count: n, first: p.text.firstTable}, err
	})
	a := answer{s}
	return &experiments.Findings{Report: a}, err
}

// texts are the tables that fit the architectures, each with every layout.
func (c *Config) texts(ctx context.Context, limits []published.Reach) (out []*text, err error) {
	for _, arch := range c.Arches {
		own := arch.Traits().Name
		names := c.Records
		if len(names) == 0 {
			names = []string{records.DefaultFor(own)}
		}
		first := true
		for _, name := range names {
			t, err := records.Open(ctx, name, records.Options{Kallsyms: c.Kallsyms})
			if err != nil {
				return nil, err
			}
			if a := t.Arch(); a != "" && a != own {
				continue
			}
			for _, l := range limits {
				if l.Arch == own {
					out = append(out, newText(t, arch, l))
					out[len(out)-1].firstTable = first
				}
			}
			first = false
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no table is of these instruction sets")
	}
	return out, nil
}
