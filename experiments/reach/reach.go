// Package reach asks which sites can call a trampoline themselves, and which need
// a way round, by how far from the text the trampoline lies.
package reach

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results"
)

const (
	name     = "reach"
	question = "Who can call directly? What share of a kernel's sites reaches a trampoline with their own instruction, by its distance from the " +
		"text, and what happens to the others?"
)

// Experiment is the question.
var Experiment = experiments.Legacy{
	Name: name, Question: question,
	Short: "who can call a trampoline directly? the share of sites in branch range, by distance from the text",
	About: "reach places a trampoline at distances below and above the text of each table of records and asks\n" +
		"every site for the instruction that calls it: directly, through the common entry, or not at all.\n" +
		"Counts are exact, and held against the reach that the manuals state. riscv64 has two layouts: the\n" +
		"pair of Linux 6.3 to 6.15, and the word of 6.16 and later, whose auipc is fixed for ftrace_caller.",
	Examples: []string{
		"reach --out reach",
		"reach --records /sys/kernel/tracing/available_filter_functions_addrs --distance 0,96M,2G",
		"reach --arch riscv64 --distance 0,512,1K,2046,2048 --format csv",
	},
	Table: table,
	Flags: func(f *pflag.FlagSet) experiments.LegacyRun {
		r := &request{}
		experiments.Register(f, experiments.Arches(&r.arches))
		f.StringArrayVar(&r.records, "records", nil, "`table` of records: a built-in one, a file or gen:...; repeatable (default: that of a real kernel for each instruction set)")
		f.StringVar(&r.options.Kallsyms, "kallsyms", "", "`file` with the addresses for a list of functions without")
		experiments.Register(f, experiments.Sizes(&r.distances, "distance", "0,256,512,1K,1536,2046,2048,4K,64K,1M,16M,64M,96M,104M,108M,112M,114M,116M,118M,120M,122M,124M,126M,128M,130M,256M,512M,1G,"+
			"1536M,2000M,2032M,2034M,2036M,2038M,2040M,2042M,2044M,2046M,2048M,2052M,4G", "`list` of distances of the trampoline from the text, in bytes", 1<<46))
		return r.run
	},
}.Experiment()

// request is what the flags ask for.
type request struct {
	arches    []isa.Arch
	records   []string
	options   records.Options
	distances []uint64
}

// row is one place of the trampoline.
type row struct {
	source   string
	arch     string
	limit    published.Reach
	below    bool
	distance uint64
	count
}

func table() results.Table {
	return results.Table{Name: name, Columns: []results.Column{
		{Name: "source", Doc: "table of records"},
		{Name: "arch", Doc: "instruction set"},
		{Name: "layout", Doc: "word: one instruction toggles; pair: two together"},
		{Name: "side", Doc: "the trampoline lies below the core kernel's text or above it"},
		{Name: "distance_bytes", Doc: "of the trampoline from the page of the first record (below) or from the last record (above)"},
		{Name: "sites", Doc: "records that the kernel patches"},
		{Name: "refused", Doc: "records that are misaligned, so that it does not", Detail: true},
		{Name: "direct", Doc: "sites whose own instruction calls the trampoline"},
		{Name: "through_entry", Doc: "sites that call ftrace_caller, which finds the trampoline through the ops"},
		{Name: "unreachable", Doc: "sites out of reach that have no literal, so that no way leads to the trampoline"},
		{Name: "stated", Doc: "sites in range by the reach that the manual or the kernel states"},
		{Name: "missed", Doc: "sites for which the kernel takes the direct way, whose branch would land elsewhere"},
		{Name: "direct_share", Doc: "of the sites, 0 to 1"},
		{Name: "contiguous_share", Doc: "the same if sites lay evenly from the first to the last; empty where range does not count from sites"},
	}}
}

func (r *row) side() string {
	if r.below {
		return "below"
	}
	return "above"
}

// share is the part of the sites that calls directly.
func (r *row) share() float64 {
	if r.sites == 0 {
		return 0
	}
	return float64(r.direct) / float64(r.sites)
}

func (r *row) cells() []any {
	even := any(results.Empty)
	if r.limit.From == published.FromSite {
		even = r.even
	}
	return []any{
		r.source, r.arch, r.limit.Layout, r.side(), r.distance, r.sites, r.refused, r.direct, r.throughEntry, r.unreachable,
		r.stated, r.missed(), r.share(), even,
	}
}

func (r *request) run(ctx context.Context, lab *experiments.Lab) (*experiments.Answer, error) {
	limits, err := published.Reaches.Read("")
	if err != nil {
		return nil, err
	}
	texts, err := r.texts(ctx, limits)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	for _, x := range texts {
		a.asked += len(x.places(r.distances))
	}
	for _, x := range texts {
		for _, p := range x.places(r.distances) {
			if err := ctx.Err(); err != nil {
				return a.answer(), err
			}
			row := row{source: x.Name(), arch: x.arch.Traits().Name, limit: x.limit, below: p.below, distance: p.distance}
			if row.count, err = x.count(p.at); err != nil {
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

// texts are the tables that fit the architectures, each with every layout.
func (r *request) texts(ctx context.Context, limits []published.Reach) (out []*text, err error) {
	for _, arch := range r.arches {
		own := arch.Traits().Name
		names := r.records
		if len(names) == 0 {
			names = []string{records.DefaultFor(own)}
		}
		sources, err := experiments.Open(ctx, names, r.options)
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
