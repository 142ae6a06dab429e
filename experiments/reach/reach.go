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

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "reach",
	Short: "who can call a trampoline directly? the share of sites in branch range, by distance from the text",
	Examples: []string{
		"reach --out reach",
		"reach --records /sys/kernel/tracing/available_filter_functions_addrs --distance 0,96M,2G",
		"reach --arch riscv64 --distance 0,512,1K,2046,2048 --format csv",
	},
	Prose: prose, Columns: columns, Fields: (*Config).fields, Measure: measure,
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

var columns = results.Columns[*row]{
	{Name: "source", Doc: "table of records", Cell: func(r *row) any { return r.Source }},
	{Name: "arch", Doc: "instruction set", Cell: func(r *row) any { return r.Arch }},
	{Name: "layout", Doc: "word: one instruction toggles; pair: two together",
		Cell: func(r *row) any { return r.Limit.Layout }},
	{Name: "side", Doc: "the trampoline lies below the core kernel's text or above it",
		Cell: func(r *row) any { return r.Side() }},
	{Name: "distance_bytes", Kind: results.Integer,
		Doc:  "of the trampoline from the page of the first record (below) or from the last record (above)",
		Cell: func(r *row) any { return r.Distance }},
	{Name: "sites", Kind: results.Integer,
		Doc: "records that the kernel patches", Cell: func(r *row) any { return r.Sites }},
	{Name: "refused", Kind: results.Integer, Doc: "records that are misaligned, so that it does not", Detail: true,
		Cell: func(r *row) any { return r.refused }},
	{Name: "direct", Kind: results.Integer, Doc: "sites whose own instruction calls the trampoline",
		Cell: func(r *row) any { return r.Direct }},
	{Name: "through_entry", Kind: results.Integer,
		Doc:  "sites that call ftrace_caller, which finds the trampoline through the ops",
		Cell: func(r *row) any { return r.throughEntry }},
	{Name: "unreachable", Kind: results.Integer,
		Doc:  "sites out of reach that have no literal, so that no way leads to the trampoline",
		Cell: func(r *row) any { return r.unreachable }},
	{Name: "stated", Kind: results.Integer, Doc: "sites in range by the reach that the manual or the kernel states",
		Cell: func(r *row) any { return r.stated }},
	{Name: "missed", Kind: results.Integer,
		Doc:  "sites for which the kernel takes the direct way, whose branch would land elsewhere",
		Cell: func(r *row) any { return r.Missed() }},
	{Name: "direct_share", Kind: results.Number,
		Doc: "of the sites, 0 to 1", Cell: func(r *row) any { return r.Share() }},
	{Name: "contiguous_share", Kind: results.Number,
		Doc:  "the same if sites lay evenly from the first to the last; empty where range does not count from sites",
		Cell: func(r *row) any { return results.If(r.Limit.From == published.FromSite, r.Even) }},
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
