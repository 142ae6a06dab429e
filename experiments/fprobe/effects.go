package fprobe

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
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
func (g *group) name() string {
	name := "program on entry"
	if g.exit {
		name = "program on entry and return"
	}
	if g.threads > 1 {
		name += fmt.Sprintf(", %d threads", g.threads)
	}
	return name
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

// effectSheet is what each cost adds.
func (a *answer) effectSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "What each cost adds, on average over the combinations of the others", Columns: []string{"program", "cost", "loads", "registers saved", "atomics"}}
	if !a.noTime {
		s.Columns = append(s.Columns, "ns", "95 % interval")
	}
	mean := func(n int64) string { return fmt.Sprintf("%+.1f", float64(n)/(combinations/2)) }
	for _, g := range groups(a.rows) {
		for i, c := range costs {
			n := g.counted(c.bit)
			cells := []string{g.name(), fmt.Sprintf("%d %s", i+1, c.name), mean(n.Loads), mean(n.Saved), mean(n.Atomics)}
			if !a.noTime {
				e, err := g.effect(c.bit)
				if err != nil {
					continue
				}
				cells = append(cells, fmt.Sprintf("%+.1f", e.Value), fmt.Sprintf("%+.1f to %+.1f", e.Low, e.High))
			}
			s.Rows = append(s.Rows, cells)
		}
	}
	return s
}

// ladderSheet goes down from all four costs to none.
func (a *answer) ladderSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The ladder", Columns: []string{"program", "left of the four", "what ended the last one", "loads", "walked", "registers saved", "atomics"}}
	if !a.noTime {
		s.Columns = append(s.Columns, "ns", "95 % interval")
	}
	for _, g := range groups(a.rows) {
		for i, c := range rungs() {
			ended := ""
			if i > 0 {
				ended = costs[i-1].ended
			}
			r := g.by[c]
			cells := []string{g.name(), label(c), ended, fmt.Sprint(r.counts.Loads), fmt.Sprint(r.counts.Walked), fmt.Sprint(r.counts.Saved), fmt.Sprint(r.counts.Atomics)}
			if !a.noTime {
				cells = append(cells, fmt.Sprintf("%.1f", r.live.Value), fmt.Sprintf("%.1f to %.1f", r.live.Low, r.live.High))
			}
			s.Rows = append(s.Rows, cells)
		}
	}
	return s
}

// matters says which cost adds most, in time, and whether that is certain.
func (a *answer) matters() string {
	var parts []string
	for _, g := range groups(a.rows) {
		type one struct {
			fit.Estimate
			name string
		}
		var all []one
		for _, c := range costs {
			e, err := g.effect(c.bit)
			if err != nil {
				return ""
			}
			all = append(all, one{e, c.name})
		}
		slices.SortStableFunc(all, func(a, b one) int {
			switch {
			case a.Value > b.Value:
				return -1
			case a.Value < b.Value:
				return 1
			}
			return 0
		})
		certain := "the intervals of the first two do not overlap"
		if all[0].Low <= all[1].High {
			certain = "but the intervals of the first two overlap"
		}
		parts = append(parts, fmt.Sprintf("- %s: %s (%+.1f ns), then %s (%+.1f ns); %s", g.name(), all[0].name, all[0].Value, all[1].name, all[1].Value, certain))
	}
	if len(parts) == 0 {
		return ""
	}
	return "On this machine the most is lost because:\n\n" + strings.Join(parts, "\n")
}
