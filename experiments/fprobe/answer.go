// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// answer is the rows that were finished, and what is added up.
type answer struct {
	*experiments.Study[Config, *row]
	Sum *sum
}

// rungs are the combinations of the ladder: all four costs, and then one less at a
// time, in the order in which they were listed.
func rungs() (out []int) {
	c := combinations - 1
	out = append(out, c)
	for _, cost := range costs {
		c &^= cost.bit
		out = append(out, c)
	}
	return out
}

// group is the rows of all combinations with the same program and threads, as they were prepared.
type group []*row

// of is the row of a combination.
func (g group) of(combination int) *row { return g[combinations-1-combination] }

// effect is what one cost adds, on average over all combinations of the other three:
// its main effect in a full factorial design. For each measurement of all combinations
// there is one; the interval is that of their median.
func (g group) effect(bit int) (fit.Estimate, error) {
	each := make([]float64, len(g[0].each))
	for k := range each {
		for c := range combinations {
			if c&bit != 0 {
				each[k] += (g.of(c).each[k] - g.of(c &^ bit).each[k]) / (combinations / 2)
			}
		}
	}
	return fit.Median(each)
}

// counted is the same of counts, which are exact: times combinations / 2.
func (g group) counted(bit int) (n dispatch.Counts) {
	for c := range combinations {
		if c&bit != 0 {
			n = n.Add(g.of(c).Counts).Add(g.of(c &^ bit).Counts.Times(-1))
		}
	}
	return n
}

// added is what one cost adds to a program, on average over the combinations of the others.
type added struct {
	Program, Cost         string
	Number                int // of the cost
	Loads, Saved, Atomics float64
	Time                  *fit.Estimate // nil with NoTime
}

// effects are what each cost adds to each program.
func (a *answer) effects() (out []added, err error) {
	mean := func(n int64) float64 { return float64(n) / (combinations / 2) }
	for g := range slices.Chunk(group(a.Rows), combinations) {
		if len(g) < combinations {
			break // it was cut short
		}
		for i, c := range costs {
			n := g.counted(c.bit)
			one := added{g[0].Program(), c.name, i + 1, mean(n.Loads), mean(n.Saved), mean(n.Atomics), nil}
			if !a.Config.NoTime {
				e, err := g.effect(c.bit)
				if err != nil {
					return nil, err
				}
				one.Time = &e
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// What can be added.
const (
	asTime    = "time"
	asPercent = "percent"
)

// extra is by how much a hit lengthens one turn of the bench, as a share of the turn
// without a program: throughput that falls by p % means time x 1/(1 - p/100).
func extra(h published.Hit) float64 { return h.Slowdown() - 1 }

// sum is mechanisms attached together, when each costs what it costs alone.
type sum struct {
	Names []string
	extra float64
}

// Slowdown is the time of a turn over that without a program.
func (s *sum) Slowdown() float64 { return 1 + s.extra }

// Percent is the hit that such an extra time is.
func (s *sum) Percent() float64 { return 100 * (1 - 1/(1+s.extra)) }

// addUp adds the costs of the mechanisms that are asked for; nil for none.
func (c *Config) addUp(hits []published.Hit) (*sum, error) {
	var chosen []published.Hit
	for _, name := range c.Add {
		h := experiments.Find(hits, func(h *published.Hit) bool { return h.Mechanism == name })
		if h == nil {
			valid := spelling.Distinct(hits, func(h published.Hit) string { return h.Mechanism })
			return nil, fmt.Errorf("add %q: %w", name, spelling.NotOneOf(name, valid))
		}
		chosen = append(chosen, *h)
	}
	if c.AddAs == asPercent {
		return nil, refusal(chosen)
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	return &sum{Names: c.Add, extra: spelling.Sum(spelling.Each(chosen, extra))}, nil
}

// refusal says why per cents of throughput are not added.
func refusal(chosen []published.Hit) error {
	const why = "per cents: hits are shares of a throughput, and each would be a share of what the others " +
		"left: they do not add"
	if len(chosen) < 2 {
		return fmt.Errorf("%s; add times, time x 1/(1 - p/100)", why)
	}
	var terms []string
	total, s := 0.0, sum{}
	for _, h := range chosen {
		terms = append(terms, fmt.Sprintf("%g", h.Percent))
		total, s.extra = total+h.Percent, s.extra+extra(h)
	}
	return fmt.Errorf("%s; %s would be %.1f %%, and times make it %.1f %% (time x %.3f)", why, strings.Join(terms, " + "),
		total, s.Percent(), 1+s.extra)
}
