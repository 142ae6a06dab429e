// SPDX-License-Identifier: Apache-2.0

package int3lookup

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows and crossings say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
	Crossings []*crossing
}

// Largest are the crossings of the largest batch.
func (a *answer) Largest() []*crossing {
	n := slices.Max(a.Config.Patches)
	return experiments.Where(a.Crossings, func(c *crossing) bool { return c.Patches == n })
}

// Keys is how many lookups a measurement has at least.
func (a *answer) Keys() int { return keysPerRepeat }

// chart is the mean comparisons in the largest batch against groups.
func (a *answer) chart() *plots.Chart {
	n := slices.Max(a.Config.Patches)
	c := &plots.Chart{
		Title:    "A walk over groups loses to one index over everything",
		Subtitle: fmt.Sprintf("%s patches, in groups that are shuffled among themselves", results.Thousands(n)),
		X: plots.Axis{Label: "groups",
			Log: true}, Y: plots.Axis{Label: "comparisons until an address is found (mean)"},
	}
	for _, k := range a.Config.Lookups {
		s := plots.Series{Name: k.String()}
		for _, r := range a.Rows {
			if r.Kind != k || r.Patches != n {
				continue
			}
			if r.Groups == 0 { // the same for all
				for _, g := range a.Config.groupsOf(int3.Groups, n) {
					s.X, s.Y = append(s.X, float64(g)), append(s.Y, r.Cost.Mean())
				}
				continue
			}
			s.X, s.Y = append(s.X, float64(r.Groups)), append(s.Y, r.Cost.Mean())
		}
		c.Series = append(c.Series, s)
	}
	return c
}
