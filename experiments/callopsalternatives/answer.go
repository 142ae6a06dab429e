// SPDX-License-Identifier: Apache-2.0

package callopsalternatives

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is what the rows say that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

// Designs are all of them.
func (a *answer) Designs() []design { return designs }

// find is the row of a design with users and the most irrelevant tracers.
func (a *answer) find(design string, u users) *row {
	for _, r := range slices.Backward(a.Rows) {
		if r.Name == design && r.Users == u {
			return r
		}
	}
	return nil
}

// Direct are the rows of a direct trampoline with the most irrelevant tracers.
func (a *answer) Direct() (out []*row) {
	for _, d := range designs {
		if r := a.find(d.Name, direct); r != nil {
			out = append(out, r)
		}
	}
	return out
}

// Verdict is what the checker says of a design.
func (a *answer) Verdict(design string) string {
	if r := a.find(design, callback); r != nil && r.verdict != "" {
		return string(r.verdict)
	}
	return "cannot be asked"
}

// chart is the loads of every design.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "The ops at the site is two loads away, until somebody joins",
		X:     plots.Axis{Label: "loads on the way to the tracers"}, Y: plots.Axis{Names: []string{}},
	}
	if len(a.Config.Irrelevant) > 0 {
		c.Subtitle = fmt.Sprintf("with %d tracers of another function", a.Config.Irrelevant[len(a.Config.Irrelevant)-1])
	}
	for i := range designs {
		c.Y.Names = append(c.Y.Names, designs[i].Name)
	}
	curves := experiments.Curves{Kind: plots.Lying}
	for _, u := range []users{callback, direct, both} {
		for i := range designs {
			if r := a.find(designs[i].Name, u); r != nil {
				curves.Add(u.String(), float64(r.Cost.Loads), float64(i), fmt.Sprint(r.Cost.Loads))
			}
		}
	}
	c.Series = curves.Series
	return c
}
