// SPDX-License-Identifier: Apache-2.0

package buffersize

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/results/plots"
	"github.com/textpoke/textpoke/sched"
)

// answer is the rows that were finished.
type answer struct {
	*experiments.Study[Config, *row]
}

func (a *answer) findings() *experiments.Findings {
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{
		{End: "-front", Picture: a.tradeOff().Picture()}, {End: "-crossover", Picture: a.crossovers().Picture()},
	}}
}

// of are the rows of one machine.
func (a *answer) of(m experiments.Machine) []*row {
	return experiments.Where(a.Rows, func(r *row) bool { return r.Machine == m })
}

// timed are those rows that were not only counted.
func timed(rows []*row) []*row { return experiments.Where(rows, (*row).timed) }

// with is the row of so many slots; nil if there is none, or no time.
func with(rows []*row, slots int) *row {
	return experiments.First(timed(rows), func(r *row) bool { return r.Buffer.Slots == slots })
}

// visible is the least speed-up that somebody notices who does not measure: ours to
// say, the thread names none.
const visible = 1.1

// Visible is the least speed-up, in words.
func (a *answer) Visible() string { return fmt.Sprintf("%.0f %%", (visible-1)*100) }

// faster is what ten times the slots of 2019 do, machine by machine.
type faster struct {
	From, To, RoundsBefore, RoundsAfter int
	Machines                            []string
}

// Faster is nil where no machine has both sizes.
func (a *answer) Faster() *faster {
	var f *faster
	for _, m := range a.Config.Machines {
		before, after := a.pair(m, thread)
		if before == nil {
			continue
		}
		if f == nil {
			f = &faster{From: before.Buffer.Slots, To: after.Buffer.Slots, RoundsBefore: before.Rounds,
				RoundsAfter: after.Rounds}
		}
		f.Machines = append(f.Machines, fmt.Sprintf("%.2f times faster on %s",
			float64(before.Modelled.Update)/float64(after.Modelled.Update), m))
	}
	return f
}

// Calibrations is a row of each machine that has any.
func (a *answer) Calibrations() (out []*row) {
	for _, m := range a.Config.Machines {
		if rows := a.of(m); len(rows) > 0 {
			out = append(out, rows[0])
		}
	}
	return out
}

// Counted are the rows of a machine that were not timed.
func (a *answer) Counted(m experiments.Machine) []*row {
	return experiments.Where(a.of(m), func(r *row) bool { return !r.timed() })
}

// Sizes that are about ten times apart; thread is what the claims are about, the
// vector of 2019 and one ten times as big.
var (
	thread = [2]int{170, 1700}
	tenths = [][2]int{{16, 170}, thread, {1700, 16384}}
)

// pair are the rows of two sizes on one machine; nil if one was not timed.
func (a *answer) pair(m experiments.Machine, slots [2]int) (before, after *row) {
	rows := a.of(m)
	if before, after = with(rows, slots[0]), with(rows, slots[1]); before == nil || after == nil {
		return nil, nil
	}
	return before, after
}

// claim is two sizes, one of which is about ten times the other.
type claim struct{ Before, After *row }

// Faster is how many times faster the bigger one is, ByFormula what the formula says.
func (c claim) Faster() float64 { return c.Before.Millis() / c.After.Millis() }
func (c claim) ByFormula() float64 {
	return c.Before.split.update(c.Before.Patches, c.Before.Flushes) / c.After.split.update(c.After.Patches, c.After.Flushes)
}

// Invisible tells whether that is not noticed, HidesMS beside how much other work it would not be.
func (c claim) Invisible() bool  { return c.Faster() < visible }
func (c claim) HidesMS() float64 { return max(0, hides(c.Before.Millis(), c.After.Millis())) }

// Claims are those pairs, machine by machine.
func (a *answer) Claims() (out []claim) {
	for _, m := range a.Config.Machines {
		for _, slots := range tenths {
			if before, after := a.pair(m, slots); before != nil {
				out = append(out, claim{before, after})
			}
		}
	}
	return out
}

// hides is how much other work beside an update, of which nothing gets faster, makes
// the whole less than visible times faster.
func hides(was, is float64) float64 { return (was - visible*is) / (visible - 1) }

// OwnCrossover is a machine's crossover as the engine has it; "-" where too few sizes were timed.
func (a *answer) OwnCrossover(m experiments.Machine) string {
	if f, ok := fit(a.of(m)); ok {
		return fmt.Sprintf("%.1f", f.crossover())
	}
	return "-"
}

// DominateFrom is from how many CPUs on rounds dominate the size of 2019.
func (r *row) DominateFrom() int {
	return sort.Search(mostCPUs, func(n int) bool { return n >= 2 && r.splitAt(n).crossover() >= float64(thread[0]) })
}

// SiteNS, BatchNS, Crossover and Enough are those of the row's machine, by the formula.
func (r *row) SiteNS() float64    { return r.split.site }
func (r *row) BatchNS() float64   { return r.split.batch }
func (r *row) Crossover() float64 { return r.split.crossover() }
func (r *row) Enough() float64    { return math.Ceil(r.split.enough()) }

// Millis is the update's time in milliseconds, RoundsPercent what rounds take of it by the formula.
func (r *row) Millis() float64        { return float64(r.Modelled.Update) / 1e6 }
func (r *row) RoundsPercent() float64 { return 100 * r.split.share(r.Patches, r.Flushes) }

// Fronts is which sizes are on which front.
func (a *answer) Fronts() form.Table {
	s := form.Table{Columns: []string{"machine", "less of", "on the front", "dominated (by)"}}
	for _, m := range a.Config.Machines {
		rows := timed(a.of(m))
		if len(rows) == 0 {
			continue
		}
		for i := range fronts {
			var on, off []string
			for _, r := range rows {
				if by := r.dominated[i]; by == "" {
					on = append(on, r.Buffer.String())
				} else {
					off = append(off, fmt.Sprintf("%s (%s)", r.Buffer, by))
				}
			}
			s.Rows = append(s.Rows, []string{m.String(), fronts[i].name, strings.Join(on, ", "), orNone(off)})
		}
	}
	return s
}

func orNone(s []string) string {
	if len(s) == 0 {
		return "none"
	}
	return strings.Join(s, ", ")
}

func ms[T ~int64](ns T) string { return fmt.Sprintf("%.4g", float64(ns)/1e6) }

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
