// SPDX-License-Identifier: Apache-2.0

package eraladder

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// differ is the rows whose counts are not those that follow from the source.
func (a answer) differ() error {
	for _, r := range a.Rows {
		if want := r.wanted(); r.Rounds != want || r.PlanRow.Stops != r.era.Stops {
			return fmt.Errorf("%s %s %s: %d rounds and %d stops for %d sites, not %d and %d",
				r.ArchName(), r.Client, r.Releases(), r.Rounds, r.PlanRow.Stops, r.Sites, want, r.era.Stops)
		}
	}
	return nil
}

// most are the rows with the most sites.
func (a answer) most() []*row {
	n := slices.Max(a.Config.Sites)
	return experiments.Where(a.Rows, func(r *row) bool { return r.Sites == n })
}

// Least and Most are those of them that interrupt each CPU least and most.
func (a answer) Least() *row { return a.extreme(func(r, than int) bool { return r < than }) }
func (a answer) Most() *row  { return a.extreme(func(r, than int) bool { return r > than }) }

func (a answer) extreme(beats func(r, than int) bool) (out *row) {
	for _, r := range a.most() {
		if out == nil || beats(r.IPIsPerCPU, out.IPIsPerCPU) {
			out = r
		}
	}
	return out
}

// Comparisons hold the rounds against the formulas.
func (a answer) Comparisons() (out []experiments.Comparison) {
	for _, r := range a.Rows {
		out = append(out, experiments.Comparison{
			What:      fmt.Sprintf("%s %s %s: %s rounds, n = %d", r.ArchName(), r.Client, r.Releases(), r.Formula, r.Sites),
			Published: float64(r.wanted()), Ours: float64(r.Rounds), Exact: true, Source: r.Source,
		})
	}
	return out
}

// Ladder is an era a line.
func (a answer) Ladder() form.Table {
	s := form.Table{Columns: []string{"arch", "client", "releases", "protocol", "rounds", "stops"}}
	for _, n := range a.Config.Sites {
		s.Columns = append(s.Columns, fmt.Sprintf("interrupts per CPU, n = %d", n))
	}
	var last *era
	for _, r := range a.Rows {
		if r.era != last {
			s.Rows = append(s.Rows, []string{r.ArchName(), r.Client, r.Releases(), r.era.Protocol.Summary, r.Formula,
				fmt.Sprint(r.era.Stops)})
			last = r.era
		}
		s.Rows[len(s.Rows)-1] = append(s.Rows[len(s.Rows)-1], fmt.Sprint(r.IPIsPerCPU))
	}
	for i := range s.Rows {
		for len(s.Rows[i]) < len(s.Columns) {
			s.Rows[i] = append(s.Rows[i], "")
		}
	}
	return s
}

// chart is the interrupts of the most sites, an era a bar.
func (a answer) chart() *plots.Chart {
	rows := a.most()
	c := &plots.Chart{
		Title: "From stop_machine to today: what each era cost every CPU",
		X:     plots.Axis{Label: "interrupts per CPU", Log: true}, Y: plots.Axis{Names: []string{}},
		Height: vg.Length(30+6*max(len(rows), 4)) * vg.Millimeter,
	}
	live := plots.Series{Name: "CPUs go on meanwhile", Kind: plots.Lying}
	stopped := plots.Series{Name: "every CPU stands still meanwhile", Kind: plots.Lying}
	for i, r := range rows {
		c.X.Label = fmt.Sprintf("interrupts per CPU for %s sites", results.Thousands(r.Sites))
		c.Y.Names = append(c.Y.Names, fmt.Sprintf("%s %s, %s", r.ArchName(), r.Client, r.Releases()))
		to := &live
		if r.PlanRow.Stops > 0 {
			to = &stopped
		}
		to.X, to.Y = append(to.X, float64(r.IPIsPerCPU)), append(to.Y, float64(i))
		to.Labels = append(to.Labels, results.Thousands(r.IPIsPerCPU))
	}
	c.Series = experiments.Where([]plots.Series{live, stopped}, func(s plots.Series) bool { return len(s.X) > 0 })
	c.Alone = true
	return c
}
