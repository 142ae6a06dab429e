// SPDX-License-Identifier: Apache-2.0

package jumplabel

import (
	"fmt"
	"math"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results/plots"
)

// times is the time of switching against entries, both ways.
func (a *answer) times() *plots.Chart {
	c := &plots.Chart{
		Title: "One by one a key's time grows with its entries; batched it hardly does",
		Subtitle: fmt.Sprintf(
			"Modelled by the timed engine, mean of %d switches with 95 %% intervals. The curves were fitted to the pair "+
				"published in 2019",
			a.Config.Repeat,
		),
		X: plots.Axis{Label: "entries of the static key", Log: true}, Y: plots.Axis{Label: "time of switching it (ms)",
			Log: true},
	}
	points, curves := experiments.Curves{Kind: plots.Points}, experiments.Curves{Kind: plots.Curve}
	for _, m := range a.Config.Machines {
		for _, w := range ways {
			for _, n := range a.Config.Entries {
				if r := a.find(m, n, w); r != nil {
					points.Between(m.String()+", "+w.name, float64(n), r.update.Mean/1e6, max(r.update.Low, 1)/1e6, r.update.High/1e6)
				}
			}
		}
	}
	for _, w := range ways {
		for _, n := range a.Config.Entries {
			curves.Add("by the fit, "+w.name, float64(n), a.Facts.Fit.update(n, poke.RoundsPerBatch()*w.batches(n))/1e6)
		}
	}
	c.Series = append(points.Series, curves.Series...)
	slow, fast := a.Facts.slow, a.Facts.fast
	n := float64(slow.Entries)
	c.Series = append(c.Series, plots.Series{Name: "published", Kind: plots.Points, X: []float64{n, n},
		Y: []float64{slow.UpdateMS.Value, fast.UpdateMS.Value}})
	for _, k := range []published.KeyUpdate{slow, fast} {
		c.Notes = append(c.Notes, plots.Note{X: 0.9 * n, Y: 1.3 * k.UpdateMS.Value, Text: fmt.Sprintf("%d rounds: %g ms",
			k.Rounds, k.UpdateMS.Value), Right: true})
	}
	return c
}

// search is the handler's time against the entries that it searches.
func (a *answer) search() *plots.Chart {
	c := &plots.Chart{
		Title: fmt.Sprintf("Each doubling of a batch costs the handler about %.0f ns", a.Facts.Search.Level),
		Subtitle: "Comparisons are counted exactly; what one takes is fitted to the two published points, and all else " +
			"is a prediction",
		X: plots.Axis{Label: "entries searched", Log: true}, Y: plots.Axis{Label: "handler (ns)"},
	}
	levels := plots.Series{Name: "log2 levels", Kind: plots.Curve}
	mean := plots.Series{Name: "binary search, mean comparisons"}
	most := plots.Series{Name: "and its most", Kind: plots.Steps}
	tree := plots.Series{Name: "btree, mean comparisons"}
	for _, n := range a.Config.Entries {
		x := a.Facts.Search.handlers(n)
		for _, to := range []struct {
			s *plots.Series
			y float64
		}{{&levels, x.level}, {&mean, x.mean}, {&most, x.deepest}, {&tree, x.tree}} {
			to.s.X, to.s.Y = append(to.s.X, float64(n)), append(to.s.Y, to.y)
		}
	}
	was := plots.Series{Name: "published", Kind: plots.Points}
	for _, k := range a.Facts.rows {
		if k.HandlerNS.Known {
			was.X, was.Y = append(was.X, float64(searched(k))), append(was.Y, k.HandlerNS.Value)
		}
	}
	c.Series = []plots.Series{levels, mean, most, tree, was}
	for _, s := range c.Series {
		c.Y.To = max(c.Y.To, 100*math.Ceil(slices.Max(s.Y)/100))
	}
	return c
}
