package int3lookup

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows and crossings that were finished.
type answer struct {
	*request
	rows      []*row
	crossings []*crossing
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	asked := 0
	for _, n := range a.patches {
		for _, k := range a.kinds {
			asked += len(a.groupsOf(k, n))
		}
	}
	if len(a.rows) < asked {
		r.CutShort = fmt.Sprintf("%d of %d indexes were measured.", len(a.rows), asked)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"A walk passes group after group, with one comparison where the address lies below and two where it does not, before it can search inside one. One sorted " +
			"index over everything needs none of that, whatever the groups; it has to be sorted first, which flush-cause counts.",
	}
	if len(a.crossings) > 0 {
		r.Sheets = append(r.Sheets, a.crossingSheet())
	}
	r.Sheets = append(r.Sheets, a.comparisonSheet())
	r.Measured = []string{"Comparisons of addresses, exactly: every address of a batch is looked up once."}
	if !a.noTime {
		r.Measured = append(r.Measured, fmt.Sprintf("Times on this machine (%s, %s): medians of %d measurements of %d lookups or more in random order, and the interval that holds the median with 95 %% confidence. They are worth their ratios.",
			runtime.GOOS, runtime.GOARCH, a.repeats, keysPerRepeat))
	}
	r.Modelled = []string{
		"Batches are generated: groups of equal size, each ascending, shuffled among themselves.",
		"The kernel's handler compares 32-bit offsets in a vector of its own; here an index is whatever the package behind it is.",
	}
	r.Beside = a.beside()
	if len(r.Beside) > 0 {
		r.Notes = []string{"Published is the binary logarithm of the entries; a search that ends early when it hits needs fewer comparisons on average, and a whole number at most."}
	}
	return experiments.NewAnswer(name, r, a.chart().Picture())
}

func (a *answer) headline() string {
	n := slices.Max(a.patches)
	var parts []string
	for _, c := range a.crossings {
		switch {
		case c.patches != n:
		case c.groups == 0:
			parts = append(parts, fmt.Sprintf("never to %s", c.rival))
		default:
			parts = append(parts, fmt.Sprintf("to %s from %d on", c.rival, c.groups))
		}
	}
	if len(parts) == 0 {
		return "There is nothing to compare the walk over groups with"
	}
	return fmt.Sprintf("Over %s patches the walk loses, in groups: %s", plots.Thousands(float64(n)), strings.Join(parts, ", "))
}

func (a *answer) crossingSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Where the walk over groups loses, in comparisons", Columns: []string{"patches", "against", "its mean", "loses from so many groups on", "its mean there"}}
	for _, c := range a.crossings {
		groups, walk := fmt.Sprint(c.groups), fmt.Sprintf("%.3f", c.walk)
		if c.groups == 0 {
			groups, walk = fmt.Sprintf("none up to %d", min(c.patches, maxGroups)), ""
		}
		s.Rows = append(s.Rows, []string{fmt.Sprint(c.patches), c.rival.String(), fmt.Sprintf("%.3f", c.rivals), groups, walk})
	}
	return s
}

func (a *answer) comparisonSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Every index", Columns: []string{"index", "patches", "groups", "comparisons, mean", "most"}}
	if !a.noTime {
		s.Columns = append(s.Columns, "ns, median", "95 % interval")
	}
	for _, r := range a.rows {
		groups := ""
		if r.groups > 0 {
			groups = fmt.Sprint(r.groups)
		}
		line := []string{r.kind.String(), fmt.Sprint(r.patches), groups, fmt.Sprintf("%.3f", r.cost.Mean()), fmt.Sprint(r.cost.Max)}
		if !a.noTime {
			line = append(line, fmt.Sprintf("%.1f", r.time.median), fmt.Sprintf("%.1f to %.1f", r.time.low, r.time.high))
		}
		s.Rows = append(s.Rows, line)
	}
	return s
}

// beside holds the depth of a search against what the jump-label series said.
func (a *answer) beside() (out []experiments.Beside) {
	for _, r := range a.rows {
		if r.kind == int3.Vector && r.patches == 56 {
			out = append(out, experiments.Beside{
				What: "most steps of a search in a vector of 56 entries", Published: 5.8, Ours: float64(r.cost.Max),
				Source: "Bristot de Oliveira, \"x86/jump_label: Bound IPIs sent when updating a static key\", v6, 2019-06-12",
			})
		}
	}
	return out
}

// chart is the mean comparisons in the largest batch against groups.
func (a *answer) chart() *plots.Chart {
	n := slices.Max(a.patches)
	c := &plots.Chart{
		Title:    "A walk over groups loses to one index over everything",
		Subtitle: fmt.Sprintf("%s patches, in groups that are shuffled among themselves", plots.Thousands(float64(n))),
		X:        plots.Axis{Label: "groups", Log: true}, Y: plots.Axis{Label: "comparisons until an address is found (mean)"},
	}
	for _, k := range a.kinds {
		s := plots.Series{Name: k.String()}
		for _, r := range a.rows {
			if r.kind != k || r.patches != n {
				continue
			}
			if r.groups == 0 { // the same for all
				for _, g := range a.groupsOf(int3.Groups, n) {
					s.X, s.Y = append(s.X, float64(g)), append(s.Y, r.cost.Mean())
				}
				continue
			}
			s.X, s.Y = append(s.X, float64(r.groups)), append(s.Y, r.cost.Mean())
		}
		c.Series = append(c.Series, s)
	}
	return c
}
