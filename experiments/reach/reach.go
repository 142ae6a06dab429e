// SPDX-License-Identifier: Apache-2.0

// Package reach asks which sites can call a trampoline themselves, and which need
// a way round, by how far from the text the trampoline lies.
package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/records"
)

// Config says which sites are asked, and from where.
// Its fields are the flags of reach.experiment.
type Config struct {
	Arches    []isa.Arch
	Records   []string
	Kallsyms  string
	Distances []uint64 // of the trampoline from the text, in bytes
}

// Experiment is the question.
var Experiment = experiments.New("reach/reach.experiment", measure)

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

// FromSite tells whether range counts from sites.
func (r *row) FromSite() bool { return r.Limit.From == published.FromSite }

// Away is the distance, as people read it.
func (r *row) Away() string { return choice.Size(r.Distance) }

// Side is where the trampoline lies.
func (r *row) Side() string {
	if r.Below {
		return "below"
	}
	return "above"
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
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
	return s, err
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

// text is a table of records under one layout of sites.
type text struct {
	*records.Table
	Arch  isa.Arch
	Limit published.Reach
	Sites []isa.Site // in the order of addresses
	// refused are records that the kernel skips for their alignment.
	refused     int
	first, last records.Addr // of the core kernel's records
	firstTable  bool         // of its instruction set
}

// page is what the entry's place is rounded to.
const page = 4096

func newText(t *records.Table, arch isa.Arch, limit published.Reach) *text {
	x := &text{Table: t, Arch: arch, Limit: limit, first: ^records.Addr(0)}
	layout := isa.Word
	if limit.Layout == published.PairSite {
		layout = isa.Pair
	}
	for i, addr := range t.Addrs() {
		if t.Module(i) == "" {
			x.first, x.last = min(x.first, addr), max(x.last, addr)
		}
		site, err := arch.Site(addr, layout)
		if err != nil { // a *isa.MisalignedError, which is all that Site fails with
			x.refused++
			continue
		}
		x.Sites = append(x.Sites, site)
	}
	if x.first > x.last { // a table of modules alone
		addrs := t.Addrs()
		x.first, x.last = slices.Min(addrs), slices.Max(addrs)
	}
	slices.SortFunc(x.Sites, func(a, b isa.Site) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
	return x
}

// entry is where ftrace_caller is taken to be: at the beginning of the text, in
// the page of the first record. Tables do not list it, since it is not traced;
// its object file is among the first that are linked (arch/*/kernel).
func (x *text) entry() records.Addr { return x.first &^ (page - 1) }

// place is where a trampoline may be.
type place struct {
	at       records.Addr
	Below    bool
	Distance uint64
}

// places are the trampoline's, those left out that the address space has no room
// for. They are multiples of 4, as all instruction sets can call; distances are
// what they come to then.
func (x *text) places(distances []uint64) (out []place) {
	for _, d := range distances {
		if at := (x.entry() - records.Addr(d) + 3) &^ 3; uint64(x.entry()) >= d {
			out = append(out, place{at, true, uint64(x.entry() - at)})
		}
	}
	for _, d := range distances {
		if at := (x.last + records.Addr(d) + 3) &^ 3; at >= x.last {
			out = append(out, place{at, false, uint64(at - x.last)})
		}
	}
	return out
}

// count is how a table's sites call one trampoline.
type count struct {
	Sites, refused                    int
	Direct, throughEntry, unreachable int
	stated                            int     // sites in range by the stated reach
	Even                              float64 // share, were they spread evenly
}

// Missed are sites that are in the range that the kernel tests, but whose
// instruction cannot call the trampoline.
func (c *count) Missed() int { return c.stated - c.Direct }

// count asks every site.
func (x *text) count(at records.Addr) (c count, err error) {
	c.Sites, c.refused = len(x.Sites), x.refused
	to := isa.Destination{Target: at, Entry: x.entry()}
	for _, s := range x.Sites {
		_, via, err := x.Arch.Enabled(s, to)
		var far *isa.ReachError
		switch {
		case errors.As(err, &far):
			c.unreachable++
		case err != nil:
			return c, fmt.Errorf("%s: %w", x.Name(), err)
		case via == isa.Direct:
			c.Direct++
		default:
			c.throughEntry++
		}
	}
	c.stated, c.Even = x.stated(at), x.even(at)
	return c, nil
}

// stated counts sites by the stated reach alone: a search among sorted addresses,
// which encodes nothing.
func (x *text) stated(at records.Addr) int {
	if x.Limit.From == published.FromEntry {
		if off := int64(at - x.entry()); -x.Limit.Down <= off && off <= x.Limit.Up {
			return len(x.Sites)
		}
		return 0
	}
	// In range: counted from + behind - down <= at <= counted from + behind + up.
	below := func(limit int64) int { // sites whose offset to the trampoline is above limit
		n, _ := slices.BinarySearchFunc(x.Sites, 0, func(s isa.Site, _ int) int {
			if int64(at-s.Addr)-x.Limit.Behind > limit {
				return -1
			}
			return 1
		})
		return n
	}
	return below(-x.Limit.Down-1) - below(x.Limit.Up)
}

// even is the closed form for text that sites fill evenly: the share of [first,
// last] that lies in the stated range.
func (x *text) even(at records.Addr) float64 {
	if len(x.Sites) == 0 {
		return 0
	}
	first, last := x.Sites[0].Addr, x.Sites[len(x.Sites)-1].Addr
	low := max(0, int64(at-first)-x.Limit.Behind-x.Limit.Up)
	high := min(int64(last-first), int64(at-first)-x.Limit.Behind+x.Limit.Down)
	if high < low {
		return 0
	}
	if first == last {
		return 1
	}
	return float64(high-low) / float64(last-first)
}
