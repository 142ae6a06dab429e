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
type Config struct {
	// Arches are the instruction sets. Default: all.
	Arches []isa.Arch
	// Records are the tables of records. Default: that of a real kernel for each
	// instruction set.
	Records []string
	// Kallsyms is the file with the addresses for a list of functions without.
	Kallsyms string
	// Distances are those of the trampoline from the text, in bytes, up to 2^46.
	// Default: 40 of them, denser near the reach of branches.
	Distances []uint64
}

//go:embed reach.experiment
var declared string

var spec = experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Arches(&c.Arches),
		experiments.Tables(
			&c.Records,
			"`table` of records: a built-in one, a file or gen:...; repeatable (default: that of a real kernel for each "+
				"instruction set)",
		),
		experiments.File(&c.Kallsyms, "kallsyms", "`file` with the addresses for a list of functions without"),
		experiments.Sizes(&c.Distances, "distance",
			"0,256,512,1K,1536,2046,2048,4K,64K,1M,16M,64M,96M,104M,108M,112M,114M,116M,118M,120M,122M,124M,126M,128M,130M,"+
				"256M,512M,1G,1536M,2000M,2032M,2034M,2036M,2038M,2040M,2042M,2044M,2046M,2048M,2052M,4G", "`list` of "+
				"distances of the trampoline from the text, in bytes", 1<<46),
	}
}

// row is one place of the trampoline.
type row struct {
	Source   string
	Arch     string
	Limit    published.Reach
	Below    bool
	Distance uint64
	count
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
			count: n}, err
	})
	a := answer{s}
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}},
		No: a.wrong()}, err
}

// texts are the tables that fit the architectures, each with every layout.
func (c *Config) texts(ctx context.Context, limits []published.Reach) (out []*text, err error) {
	for _, arch := range c.Arches {
		own := arch.Traits().Name
		names := c.Records
		if len(names) == 0 {
			names = []string{records.DefaultFor(own)}
		}
		sources, err := experiments.Open(ctx, names, records.Options{Kallsyms: c.Kallsyms})
		if err != nil {
			return nil, err
		}
		for _, src := range sources {
			if a := src.Table.Arch(); a != "" && a != own {
				continue
			}
			for _, l := range limits {
				if l.Arch == own {
					out = append(out, newText(src.Table, arch, l))
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no table is of these instruction sets")
	}
	return out, nil
}
