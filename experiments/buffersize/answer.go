// SPDX-License-Identifier: Apache-2.0

package buffersize

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
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
