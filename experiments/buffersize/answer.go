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
	return &experiments.Findings{Report: a, No: a.broken(), Pictures: []experiments.Picture{
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

// broken is a run that broke what it must keep.
func (a *answer) broken() error {
	for _, r := range a.Rows {
		if r.Violations > 0 {
			return fmt.Errorf("%s, %s slots: %d properties violated", r.Machine, r.Buffer, r.Violations)
		}
	}
	return nil
}

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

// Claims is where each claim of the thread holds.
func (a *answer) Claims() form.Table {
	s := form.Table{Columns: []string{
		"machine", "slots", "rounds", "update, modelled (ms)", "faster", "by the formula", "rounds' share before",
		"fewer interrupts", "no visible speed-up", "not visible beside other work of (ms)",
	}}
	for _, m := range a.Config.Machines {
		for _, slots := range tenths {
			before, after := a.pair(m, slots)
			if before == nil {
				continue
			}
			was, is := float64(before.Modelled.Update), float64(after.Modelled.Update)
			formula := before.split.update(before.Patches, before.Flushes) / after.split.update(after.Patches, after.Flushes)
			s.Rows = append(s.Rows, []string{
				m.String(), fmt.Sprintf("%s to %s", before.Buffer, after.Buffer), fmt.Sprintf("%d to %d", before.Rounds,
					after.Rounds),
				fmt.Sprintf("%s to %s", ms(before.Modelled.Update), ms(after.Modelled.Update)),
				fmt.Sprintf("%.2f times", was/is), fmt.Sprintf("%.2f times", formula),
				fmt.Sprintf("%.0f %%", 100*before.split.share(before.Patches, before.Flushes)),
				yes(after.Rounds < before.Rounds), yes(was/is < visible), fmt.Sprintf("%.0f", max(0, hides(was, is))/1e6),
			})
		}
	}
	return s
}

// hides is how much other work beside an update, of which nothing gets faster, makes
// the whole less than visible times faster.
func hides(was, is float64) float64 { return (was - visible*is) / (visible - 1) }

// Regions is where rounds dominate and where stores do, by the formula and as the
// engine has it.
func (a *answer) Regions() form.Table {
	s := form.Table{Columns: []string{
		"machine", "a site's stores (ns)", "a batch's rounds (ns)", "crossover (slots)", "the engine's own crossover (slots)",
		"ten times more is not visible from (slots)", "rounds dominate 170 slots from (CPUs)",
	}}
	for _, m := range a.Config.Machines {
		rows := a.of(m)
		if len(rows) == 0 {
			continue
		}
		x, own := rows[0].split, "-"
		if f, ok := fit(rows); ok {
			own = fmt.Sprintf("%.1f", f.crossover())
		}
		from := sort.Search(mostCPUs, func(n int) bool {
			return n >= 2 &&
				rows[0].splitAt(n).crossover() >= float64(thread[0])
		})
		s.Rows = append(s.Rows, []string{
			m.String(), fmt.Sprintf("%.0f", x.site), fmt.Sprintf("%.0f", x.batch), fmt.Sprintf("%.1f", x.crossover()), own,
			fmt.Sprintf("%.0f", math.Ceil(x.enough())), fmt.Sprint(from),
		})
	}
	return s
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

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
