// SPDX-License-Identifier: Apache-2.0

package pareto

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the machines that were finished, and their rows.
type answer struct {
	*experiments.Study[Config, *row]
	Done []*ladder
}

func (a *answer) findings() *experiments.Findings {
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}
}

// Burst tells whether budgets are about single milliseconds.
func (a *answer) Burst() bool { return a.Config.Measure == burst }

// Middle are the rows of the budget in the middle, a machine each.
func (a *answer) Middle() []*row {
	budgets := a.Config.Budgets
	return experiments.Where(a.Rows, func(r *row) bool { return r.Budget == budgets[len(budgets)/2] })
}

// Named is the choice with the unit of its size.
func (r *row) Named() string {
	c := r.Choice
	switch {
	case c == nil:
		return "nothing"
	case !c.Buffered:
		return c.String()
	}
	return strings.Replace(c.Buffer.String()+" slots"+strings.TrimPrefix(c.String(), c.Buffer.String()), "  ", " ", 1)
}

// Right says for which budgets a choice is.
func (l *ladder) Right(c *choice) string {
	right := l.thresholds()
	switch i := slices.Index(right, c); {
	case i < 0:
		return "none"
	case i == 0:
		return fmt.Sprintf("%.3g and more", c.taken)
	default:
		return fmt.Sprintf("%.3g to %.3g", c.taken, right[i-1].taken)
	}
}

// chart is the memory of the cheapest choice against the budget.
func (a *answer) chart() *plots.Chart {
	per := "interrupts a millisecond that an isolated CPU may take"
	c := &plots.Chart{
		Title:    "Every budget has a cheapest vector, and every machine another one",
		Subtitle: a.Config.Says() + ". Numbers: slots",
		X: plots.Axis{Label: "budget: " + per,
			Log: true}, Y: plots.Axis{Label: "memory of the cheapest choice (pages)", Log: true},
	}
	most := 1.0
	for _, l := range a.Done {
		for _, at := range l.thresholds() {
			most = max(most, at.taken)
		}
	}
	deferral := plots.Series{Name: "with deferral, which makes entries into the kernel dearer", Kind: plots.Points}
	for _, l := range a.Done {
		s := plots.Series{Name: l.Machine.String(), Kind: plots.Steps}
		add := func(to *plots.Series, x float64, at *choice, label string) {
			to.X, to.Y, to.Labels = append(to.X, x), append(to.Y, float64(at.BufferPages)), append(to.Labels, label)
		}
		for _, at := range slices.Backward(l.thresholds()) {
			switch slots := at.slots(); {
			case at.Protocol == withDeferral:
				add(&deferral, at.taken, at, at.Buffer.String())
			case slots == results.Empty:
				add(&s, at.taken, at, "no vector")
			default:
				add(&s, at.taken, at, at.Buffer.String())
			}
		}
		if n := len(s.X); n > 0 {
			s.X, s.Y, s.Labels = append(s.X, 1.5*most), append(s.Y, s.Y[n-1]), append(s.Labels, "")
			c.Series = append(c.Series, s)
		}
	}
	if len(deferral.X) > 0 {
		c.Series = append(c.Series, deferral)
	}
	labelOnce(c.Series)
	return c
}

// labelOnce leaves each label only where it stands first from the left.
func labelOnce(series []plots.Series) {
	first := map[string]float64{}
	each := func(f func(s *plots.Series, i int)) {
		for n := range series {
			for i := range series[n].Labels {
				f(&series[n], i)
			}
		}
	}
	each(func(s *plots.Series, i int) {
		key := fmt.Sprint(s.Kind, s.Labels[i])
		if x, ok := first[key]; !ok || s.X[i] < x {
			first[key] = s.X[i]
		}
	})
	each(func(s *plots.Series, i int) {
		key := fmt.Sprint(s.Kind, s.Labels[i])
		if x, ok := first[key]; ok && s.X[i] == x {
			delete(first, key)
			return
		}
		s.Labels[i] = ""
	})
}
