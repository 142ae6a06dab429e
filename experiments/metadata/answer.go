// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"math/bits"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is the finished rows, and the published figures.
type answer struct {
	*experiments.Study[Config, *row]
	Pairs []*pair
	calls []published.MultiCalls
	Grown *counts // of a resizable table with all functions
}

// row is the row of a table; nil if there is none.
func (a *answer) row(kind string, n int) *row {
	return experiments.First(a.Rows, func(r *row) bool { return r.Kind.String() == kind && r.Functions == n })
}

// pair is what one bench took an iteration with a fixed number of buckets and with a
// resizable table, all else being the same, in nanoseconds.
type pair struct {
	Bench            string
	Buckets          int
	Fixed, Resizable float64
	Chain            float64 // comparisons that find a function in the fixed one
	source           string
}

const resizable = "resizable"

// readPairs reads the published throughputs and puts those together that belong
// together.
func readPairs(file string) (out []*pair, err error) {
	rows, err := published.HashLookups.Read(file)
	if err != nil {
		return nil, err
	}
	if file == "" {
		file = published.HashLookups.Name
	}
	by, lines := map[string]*pair{}, map[string]int{}
	for _, h := range rows {
		p := by[h.Bench]
		if p == nil {
			p = &pair{Bench: h.Bench}
			by[h.Bench] = p
			out = append(out, p)
		}
		lines[h.Bench], p.source = h.Line, h.Source
		if h.Table == resizable {
			p.Resizable = h.NS()
			continue
		}
		n := 0
		if _, err := fmt.Sscanf(h.Table, "%d fixed buckets", &n); err != nil || n < 1 || bits.OnesCount(uint(n)) != 1 ||
			h.Table != fmt.Sprintf("%d fixed buckets", n) {
			return nil, fmt.Errorf("%s:%d: table %q: want %s, or \"N fixed buckets\" with a power of two", file, h.Line, h.Table,
				resizable)
		}
		if p.Buckets != 0 {
			return nil, fmt.Errorf("%s:%d: table %q: %s has %d fixed buckets already", file, h.Line, h.Table, h.Bench, p.Buckets)
		}
		p.Buckets, p.Fixed = n, h.NS()
	}
	for _, p := range out {
		if p.Buckets == 0 || p.Resizable == 0 {
			return nil, fmt.Errorf("%s:%d: %s: want it with a fixed number of buckets and resizable, to compare", file,
				lines[p.Bench], p.Bench)
		}
	}
	return out, nil
}

// chain is how many comparisons find one of n functions in a chained hash on average:
// itself, and half of the others in its bucket.
func chain(n, buckets int) float64 { return 1 + float64(n-1)/(2*float64(buckets)) }

// more is how many comparisons the fixed table needs above the resizable one.
func (a *answer) more(p *pair) float64 { return chain(a.Config.All, p.Buckets) - a.Grown.Comparisons }

// each is what a comparison takes, if all of the pair's difference is comparisons.
func (a *answer) each(p *pair) float64 { return (p.Fixed - p.Resizable) / a.more(p) }

// comparisons holds what is predicted against what was published.
func (a *answer) comparisons() (out []experiments.Comparison) {
	add := func(p *pair, how string, fixed float64) {
		out = append(out, experiments.Comparison{What: fmt.Sprintf("%s: times as fast with a resizable table, %s", p.Bench,
			how), Published: p.Fixed / p.Resizable, Ours: fixed / p.Resizable, Source: p.source})
	}
	for _, p := range a.Pairs {
		add(p, "if a call were nothing but comparisons", p.Resizable*chain(a.Config.All, p.Buckets)/a.Grown.Comparisons)
		for _, other := range a.Pairs {
			if other != p {
				add(p, "with a comparison as in "+other.Bench, p.Resizable+a.each(other)*a.more(p))
			}
		}
		if d, ok := a.measuredMore(p.Buckets); ok {
			add(p, "with the difference measured here", p.Resizable+d)
		}
	}
	return append(out, a.compareCalls()...)
}

// measuredMore is what a lookup takes longer here in that many buckets than in a
// resizable table, with all functions hooked and one called.
func (a *answer) measuredMore(buckets int) (float64, bool) {
	fixed, grown := a.row(fmt.Sprintf("fixed-%d", buckets), a.Config.All), a.row(resizable, a.Config.All)
	if fixed == nil || grown == nil || fixed.Times == nil {
		return 0, false
	}
	return fixed.Times.Hot.Value - grown.Times.Hot.Value, true
}

// probed is a mechanism of the other run that is looked up in fprobe's table, which
// had 256 buckets then.
const probed, probedBuckets = "kprobe-multi", 256

// otherRun is the run that hooked one function and then all.
type otherRun struct{ One, All *published.MultiCalls }

// Each is what a comparison took there, in nanoseconds.
func (o *otherRun) Each() float64 {
	return (o.All.NS() - o.One.NS()) / (chain(int(o.All.Functions), probedBuckets) - 1)
}

// OtherRun is nil where it is not published.
func (a *answer) OtherRun() *otherRun {
	o := &otherRun{}
	for i := range a.calls {
		switch m := &a.calls[i]; {
		case m.Mechanism != probed:
		case m.Functions == 1:
			o.One = m
		default:
			o.All = m
		}
	}
	if o.One == nil || o.All == nil {
		return nil
	}
	return o
}

// compareCalls holds what is measured here against the run that compared hash with
// padding: how much longer a call takes when all functions are hooked and not one.
func (a *answer) compareCalls() (out []experiments.Comparison) {
	for _, m := range a.calls {
		for _, one := range a.calls {
			if m.Mechanism != one.Mechanism || one.Functions != 1 || m.Functions == 1 {
				continue
			}
			kind := m.Table
			switch {
			case m.Mechanism == probed:
				kind = fmt.Sprintf("fixed-%d", probedBuckets)
			case kind == "hash":
				continue // its buckets are not said
			}
			all, single := a.row(kind, int(m.Functions)), a.row(kind, 1)
			if all == nil || single == nil || all.Times == nil {
				continue
			}
			out = append(out, experiments.Comparison{
				What: fmt.Sprintf("%s, %s: ns a call more with %d functions hooked than with one", m.Mechanism, kind,
					m.Functions),
				Published: m.NS() - one.NS(), Ours: all.Times.Hot.Value - single.Times.Hot.Value, Source: m.Source,
			})
		}
	}
	return out
}
