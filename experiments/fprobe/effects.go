// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

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

// name says what the program is.
func (g *group) name() string { return g.by[0].Program() }

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
	Loads, Saved, Atomics float64
	Time                  *fit.Estimate // nil with NoTime
}

// Effects is what each cost adds.
func (a *answer) Effects() (out []added) {
	mean := func(n int64) float64 { return float64(n) / (combinations / 2) }
	for _, g := range groups(a.Rows) {
		for i, c := range costs {
			n := g.counted(c.bit)
			one := added{Program: g.name(), Cost: fmt.Sprintf("%d %s", i+1, c.name), Loads: mean(n.Loads), Saved: mean(n.Saved),
				Atomics: mean(n.Atomics)}
			if !a.Config.NoTime {
				e, err := g.effect(c.bit)
				if err != nil {
					continue
				}
				one.Time = &e
			}
			out = append(out, one)
		}
	}
	return out
}

// effect is what one cost adds, and which.
type effect struct {
	fit.Estimate
	Name string
}

// largest are the two costs that add most to a program.
type largest struct {
	Program       string
	First, Second effect
}

// Certain tells whether the first adds more than the second beyond doubt.
func (l *largest) Certain() bool { return l.First.Low > l.Second.High }

// Largest are those of each program; nil where it cannot be told.
func (a *answer) Largest() (out []*largest) {
	for _, g := range groups(a.Rows) {
		var all []effect
		for _, c := range costs {
			e, err := g.effect(c.bit)
			if err != nil {
				return nil
			}
			all = append(all, effect{e, c.name})
		}
		slices.SortStableFunc(all, func(a, b effect) int { return cmp.Compare(b.Value, a.Value) })
		out = append(out, &largest{g.name(), all[0], all[1]})
	}
	return out
}
