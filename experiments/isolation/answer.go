// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// answer is what the rows say that were finished, and what is published.
type answer struct {
	*experiments.Study[Config, *row]
	figures
}

// measured is the figure of that name, 0 where nobody has published it.
func (f *figures) measured(name string) published.Isolated {
	return experiments.First(f.all, func(m published.Isolated) bool { return m.Measurement == name })
}

// usual is the row that interrupts everybody, or the lazy one, of one machine at the fitted rate; nil where there is none
// yet.
func (a *answer) usual(machine string, lazy bool) *row {
	return experiments.First(a.Rows, func(r *row) bool {
		return r.Machine.String() == machine && r.fitted && r.Lazy == lazy && (!lazy || r.Usual)
	})
}

// Machines are the machines that there are rows of.
func (a *answer) Machines() []string {
	return experiments.Distinct(a.Rows, func(r *row) string { return r.Machine.String() })
}

// textPatching is how much of what hits isolated CPUs is rounds of text patching.
type textPatching struct{ All, Text published.Isolated }

// Percent is its share.
func (t *textPatching) Percent() float64 { return 100 * t.Text.Value / t.All.Value }

// TextPatching is nil where it is not published.
func (a *answer) TextPatching() *textPatching {
	t := &textPatching{a.measured(allCalls), a.measured(textCalls)}
	if t.All.Value <= 0 || t.Text.Value <= 0 {
		return nil
	}
	return t
}

// PublishedHours is how long the published interrupts were counted.
func (a *answer) PublishedHours() int { return publishedHours }

// Comparisons holds what was published against the machines that it is of.
func (a *answer) Comparisons() (out []experiments.Comparison) {
	if len(a.Rows) > 0 && a.Config.Hours == publishedHours {
		everybody, lazy := a.usual(a.Machines()[0], false), a.usual(a.Machines()[0], true)
		if everybody != nil && everybody.isolated() == a.Isolated() {
			out = append(out,
				experiments.Comparison{What: a.total.Measurement, Published: a.total.Value, Ours: float64(everybody.IPIs),
					Source: a.total.Source},
				experiments.Comparison{What: a.Each.Measurement, Published: a.Each.Value,
					Ours: float64(everybody.IPIs) / float64(everybody.isolated()), Source: a.Each.Source})
			if lazy != nil && a.left.Measurement != "" {
				out = append(out, experiments.Comparison{What: fmt.Sprintf(
					"%s (here: %s entries a second)",
					a.left.Measurement,
					results.Short(
						lazy.entries,
					),
				), Published: a.left.Value, Ours: float64(lazy.IPIs), Exact: true, Source: a.left.Source})
			}
		}
	}
	for _, name := range a.Machines() {
		r := a.usual(name, true)
		for _, m := range a.all {
			if r == nil || !strings.Contains(strings.ToLower(m.Measurement), " "+strings.ReplaceAll(r.Machine.Name, "gold-",
				"gold ")+",") {
				continue
			}
			ours := r.Before()
			if strings.HasSuffix(m.Measurement, "after") {
				ours = r.After()
			}
			out = append(out, experiments.Comparison{What: m.Measurement + ", ns", Published: m.Value, Ours: ours,
				Source: m.Source})
		}
	}
	return out
}
