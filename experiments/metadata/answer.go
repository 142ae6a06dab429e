// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"math/bits"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
)

// answer is the finished rows, and what a resizable table does with all functions.
type answer struct {
	*experiments.Study[Config, *row]
	Grown *counts
}

// pair is what one bench took an iteration with a fixed number of buckets and with a
// resizable table, all else being the same, in nanoseconds.
type pair struct {
	Bench            string
	Buckets          int
	All              int // functions
	Fixed, Resizable float64
	source           string
}

const resizable = "resizable"

// readPairs reads the published throughputs and puts those together that belong
// together.
func readPairs(file string, all int) (out []*pair, err error) {
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
			p = &pair{Bench: h.Bench, All: all}
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

// guess predicts a bench from its resizable table: with comparisons as in another one, measured here, or as if it were
// nothing but comparisons.
type guess struct {
	*pair
	With, How string
}

// measuredHere is what stands for another bench where the times of this machine are taken.
const measuredHere = "here"

func guesses(pairs []*pair) (out []guess) {
	for _, p := range pairs {
		out = append(out, guess{p, "", "if a call were nothing but comparisons"})
		for _, other := range pairs {
			if other != p {
				out = append(out, guess{p, other.Bench, "with a comparison as in " + other.Bench})
			}
		}
		out = append(out, guess{p, measuredHere, "with the difference measured here"})
	}
	return out
}

// call is what a mechanism took, and the table of ours that it looks functions up in: fprobe's had 256 buckets then.
type call struct {
	published.MultiCalls
	Ours string
}

func calls() (out []call, err error) {
	all, err := published.MultiCallTimes.Read("")
	for _, m := range all {
		ours := m.Table
		if m.Mechanism == "kprobe-multi" {
			ours = "fixed-256"
		}
		out = append(out, call{m, ours})
	}
	return out, err
}
