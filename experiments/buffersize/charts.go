// SPDX-License-Identifier: Apache-2.0

package buffersize

import (
	"cmp"
	"math"
	"slices"

	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
)

// Slots is where a size stands on an axis.
func (r *row) Slots() float64 {
	if r.Buffer == sched.Dynamic {
		return float64(r.Patches)
	}
	return float64(r.Buffer.Slots)
}

// series is a line a machine, of those sizes that were timed.
func (a *answer) series(x, y func(*row) float64) (out []plots.Series) {
	for _, m := range a.Config.Machines {
		s := plots.Series{Name: m.String()}
		for _, r := range timed(a.of(m)) {
			s.X, s.Y = append(s.X, x(r)), append(s.Y, y(r))
		}
		out = append(out, s)
	}
	return out
}

// tradeOff is the front: interrupts against exposure, a size a point.
func (a *answer) tradeOff() *plots.Chart {
	c := &plots.Chart{
		Title:    "Fewer interrupts are paid for with longer breakpoints, and no size is best in both",
		Subtitle: a.Config.Says() + ". Numbers: slots",
		X:        plots.Axis{Label: "interrupts per CPU", Log: true}, Y: plots.Axis{Label: "mean exposure of a site (ms)",
			Log: true},
		Series: a.series(interrupts, func(r *row) float64 { return float64(r.Modelled.Exposure) / 1e6 }),
	}
	var all []*row
	for _, m := range a.Config.Machines {
		all = append(all, timed(a.of(m))...)
	}
	if len(all) == 0 {
		return c
	}
	less := func(x, y *row) int { return cmp.Compare(exposure(x), exposure(y)) }
	least, most := slices.MinFunc(all, less), slices.MaxFunc(all, less)
	c.Y.From, c.Y.To = exposure(least)/1e6/1.5, exposure(most)/1e6*2.5 // room for a label on top
	top := slices.Index(a.Config.Machines, most.Machine)
	for _, r := range timed(a.of(most.Machine)) { // the others' points are below these
		label := r.Buffer.String()
		if r.Buffer.Slots == 128 || r.Buffer.Slots == 256 {
			label = "" // no room beside 170
		}
		c.Series[top].Labels = append(c.Series[top].Labels, label)
	}
	return c
}

// mostCPUs is how far the lines of crossovers go.
const mostCPUs = 4096

// crossovers is where stores begin to dominate, against CPUs.
func (a *answer) crossovers() *plots.Chart {
	c := &plots.Chart{
		Title: "Above its line a machine's update is stores, below it is rounds",
		Subtitle: "Lines: (3 rounds + fences) / stores of one site, by the calibrations' costs. Marks: fitted to the " +
			"engine's updates, modelled",
		X: plots.Axis{Label: "CPUs", Log: true}, Y: plots.Axis{Label: "slots of the vector", Log: true},
	}
	own := plots.Series{Name: "the engine", Kind: plots.Points}
	for _, m := range a.Config.Machines {
		rows := a.of(m)
		if len(rows) == 0 {
			continue
		}
		line := plots.Series{Name: m.Name, Kind: plots.Curve}
		for n, last := 2.0, 0.0; n <= mostCPUs; n *= 1.25 {
			if whole := math.Floor(n); whole > last {
				line.X, line.Y = append(line.X, whole), append(line.Y, rows[0].splitAt(int(whole)).crossover())
				last = whole
			}
		}
		c.Series = append(c.Series, line)
		if f, ok := fit(rows); ok {
			own.X, own.Y = append(own.X, float64(rows[0].Online())), append(own.Y, f.crossover())
		}
	}
	c.Series = append(c.Series, plots.Series{Name: "170 slots (2019)", Kind: plots.Curve, X: []float64{2, mostCPUs},
		Y: []float64{170, 170}}, own)
	return c
}
