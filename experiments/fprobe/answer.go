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

// group is the rows of all combinations with the same program and threads.
type group struct {
	exit    bool
	threads int
	by      map[int]*row
}

// groups are the groups that are complete, in the order of the rows.
func groups(rows []*row) (out []*group) {
	for _, r := range rows {
		i := slices.IndexFunc(out, func(g *group) bool { return g.exit == r.exit && g.threads == r.threads })
		if i < 0 {
			i = len(out)
			out = append(out, &group{r.exit, r.threads, map[int]*row{}})
		}
		out[i].by[r.combination] = r
	}
	return slices.DeleteFunc(out, func(g *group) bool { return len(g.by) < combinations })
}

// effect is what one cost adds, on average over all combinations of the other three:
// its main effect in a full factorial design. For each measurement of all combinations
// there is one; the interval is that of their median.
func (g *group) effect(bit int) (fit.Estimate, error) {
	var each []float64
	for k := range g.by[0].each {
		sum := 0.0
		for c := range combinations {
			if c&bit != 0 {
				sum += g.by[c].each[k] - g.by[c&^bit].each[k]
			}
		}
		each = append(each, sum/(combinations/2))
	}
	return fit.Median(each)
}

// counted is the same of counts, which are exact: times combinations / 2.
func (g *group) counted(bit int) (n dispatch.Counts) {
	for c, r := range g.by {
		if c&bit != 0 {
			n = n.Add(r.counts).Add(g.by[c&^bit].counts.Times(-1))
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
	for _, g := range groups(a.Rows) {
		for i, c := range costs {
			n := g.counted(c.bit)
			one := added{g.by[0].Program(), c.name, i + 1, mean(n.Loads), mean(n.Saved), mean(n.Atomics), nil}
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

// What --add can be asked to add.
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
		i := slices.IndexFunc(hits, func(h published.Hit) bool { return h.Mechanism == name })
		if i < 0 {
			var valid []string
			for _, h := range hits {
				valid = append(valid, h.Mechanism)
			}
			return nil, fmt.Errorf("--add %q: %w", name, spelling.NotOneOf(name, valid))
		}
		chosen = append(chosen, hits[i])
	}
	if c.AddAs == asPercent {
		return nil, refusal(chosen)
	}
	if len(chosen) == 0 {
		return nil, nil
	}
	s := &sum{Names: c.Add}
	for _, h := range chosen {
		s.extra += extra(h)
	}
	return s, nil
}

// refusal says why per cents of throughput are not added.
func refusal(chosen []published.Hit) error {
	const why = "--add-as percent: hits are shares of a throughput, and each would be a share of what the others " +
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
