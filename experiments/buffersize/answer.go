package buffersize

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished.
type answer struct {
	*request
	rows []*row
}

// of are the rows of one machine.
func (a *answer) of(m experiments.Calibrated) (out []*row) {
	for _, r := range a.rows {
		if r.machine == m {
			out = append(out, r)
		}
	}
	return out
}

// timed are those of them that were not only counted.
func timed(rows []*row) (out []*row) {
	for _, r := range rows {
		if r.Modelled != nil {
			out = append(out, r)
		}
	}
	return out
}

// with is the row of so many slots; nil if there is none, or no time.
func with(rows []*row, slots int) *row {
	for _, r := range timed(rows) {
		if r.Buffer.Slots == slots {
			return r
		}
	}
	return nil
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if want := len(a.Machines) * len(a.Buffers); len(a.rows) < want {
		r.CutShort = fmt.Sprintf("%d of %d combinations were finished.", len(a.rows), want)
	}
	r.Headline = a.headline()
	r.Answer = []string{
		"A batch costs three rounds, however few patches are in it, and a patch its stores, whatever batch it is in. With b slots, " +
			"n patches take n * (site + batch / b): rounds always fall as b grows, and the update gets faster only until stores dominate it. " +
			"The crossover is at b = batch / site slots, where batch is three rounds with the patcher's fences, and site is what is verified, published and stored for one patch. " +
			"It grows with the number of CPUs, as a round does, and falls the dearer a store is: rounds dominate b slots just where three rounds take longer than the stores of b sites.",
		"Ten times the slots make the update (1 + x/b) / (1 + x/10b) times faster, with x the crossover: less than " + visibleText() + " faster " +
			"where b is more than about nine crossovers, and near ten times where b is a small part of one. Both claims are true at once from there on: " +
			"the interrupts are a tenth, and the time hardly changes. Below the crossover only the first one is.",
		"What grows with the vector is the time that a site holds its breakpoint, because the stores of a whole batch lie between its own and the next round; and with it the traps. " +
			"A CPU loses time to both: to interrupts where vectors are small, to traps where they are big.",
	}
	r.Sheets = []experiments.Sheet{a.claims(), a.regions(), a.costs(), a.fronts()}
	r.Measured = []string{
		"Batches, rounds, interrupts and memory are counted from the plan of one update that enables every record.",
		"Traps are counted while the timed engine executes that plan. They depend on the modelled times and on how often traced functions are called.",
	}
	r.Modelled = append(a.machineNotes(),
		"Every time is modelled: update, exposure, time in traps, stolen time, bursts.",
		"A burst also depends on the last batch: where it is nearly empty its rounds come soon after each other, and a size that leaves such a rest bursts more than its neighbours.",
		"The published claims name no machine and no number: Bristot de Oliveira, linux-kernel, 2019-10-02 (more interrupts than before, because the buffer is limited), and Zijlstra, the same day "+
			"(\"I tried growing the buffer (IIRC I made it 10 times bigger) and didn't see any performance improvements\"). What is shown is where both are true, not that they were measured here.",
		fmt.Sprintf("\"No visible speed-up\" means here: less than %s.", visibleText()),
	)
	out := experiments.NewAnswer(name, r, a.speed().Picture())
	for _, c := range []struct {
		name  string
		chart *plots.Chart
	}{{"front", a.tradeOff()}, {"stolen", a.stolen()}, {"burst", a.bursts()}, {"crossover", a.crossovers()}} {
		out.Documents = append(out.Documents, experiments.Drawn(name+"-"+c.name, c.chart.Picture())...)
	}
	out.No = a.broken()
	return out
}

// visible is the least speed-up that somebody notices who does not measure: ours to
// say, the thread names none.
const visible = 1.1

func visibleText() string { return fmt.Sprintf("%.0f %%", (visible-1)*100) }

// broken is a run that broke what it must keep.
func (a *answer) broken() error {
	for _, r := range a.rows {
		if r.Violations > 0 {
			return fmt.Errorf("%s, %s slots: %d properties violated", r.machine, r.Buffer, r.Violations)
		}
	}
	return nil
}

func (a *answer) headline() string {
	var parts []string
	for _, m := range a.Machines {
		if before, after := a.pair(m, thread); before != nil {
			parts = append(parts, fmt.Sprintf("%.2f times faster on %s", float64(before.Modelled.Update)/float64(after.Modelled.Update), m))
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%d sizes were tried", len(a.rows))
	}
	before, after := a.pair(a.rows[0].machine, thread)
	return fmt.Sprintf("%d slots in place of %d cut the rounds from %d to %d; the update, modelled, gets %s",
		after.Buffer.Slots, before.Buffer.Slots, before.Rounds, after.Rounds, strings.Join(parts, ", "))
}

// Sizes that are about ten times apart; thread is what the claims are about, the
// vector of 2019 and one ten times as big.
var (
	thread = [2]int{170, 1700}
	tenths = [][2]int{{16, 170}, thread, {1700, 16384}}
)

// pair are the rows of two sizes on one machine; nil if one was not timed.
func (a *answer) pair(m experiments.Calibrated, slots [2]int) (before, after *row) {
	rows := a.of(m)
	if before, after = with(rows, slots[0]), with(rows, slots[1]); before == nil || after == nil {
		return nil, nil
	}
	return before, after
}

// machineNotes say what was modelled of what.
func (a *answer) machineNotes() (out []string) {
	for _, m := range a.Machines {
		rows := a.of(m)
		if len(rows) == 0 {
			continue
		}
		r := rows[0]
		out = append(out, fmt.Sprintf("Calibration %s (%s), with CPUs %s, %s of %s records. %.4g calls of traced functions a second on a busy CPU.",
			m.Name, m.Machine, cpus.FormatRoles(r.Roles), r.Table.Name(), plots.Thousands(float64(r.Patches)), r.Calling()))
		var counted []string
		for _, r := range rows {
			if r.Modelled == nil {
				counted = append(counted, r.Buffer.String())
			}
		}
		if len(counted) > 0 {
			out = append(out, fmt.Sprintf("On %s, sizes %s were counted and not timed: more than %s interrupts (--limit-ipis).", m, strings.Join(counted, ", "), plots.Thousands(float64(a.Limit))))
		}
	}
	return out
}

// claims is where each claim of the thread holds.
func (a *answer) claims() experiments.Sheet {
	s := experiments.Sheet{Title: "Ten times the slots: both claims", Columns: []string{
		"machine", "slots", "rounds", "update, modelled (ms)", "faster", "by the formula", "rounds' share before",
		"fewer interrupts", "no visible speed-up", "not visible beside other work of (ms)",
	}}
	for _, m := range a.Machines {
		for _, slots := range tenths {
			before, after := a.pair(m, slots)
			if before == nil {
				continue
			}
			was, is := float64(before.Modelled.Update), float64(after.Modelled.Update)
			formula := before.split.update(before.Patches, before.Flushes) / after.split.update(after.Patches, after.Flushes)
			s.Rows = append(s.Rows, []string{
				m.String(), fmt.Sprintf("%s to %s", before.Buffer, after.Buffer), fmt.Sprintf("%d to %d", before.Rounds, after.Rounds),
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

// regions is where rounds dominate and where stores do, by the formula and as the
// engine has it.
func (a *answer) regions() experiments.Sheet {
	s := experiments.Sheet{Title: "Where rounds dominate, and where stores", Columns: []string{
		"machine", "a site's stores (ns)", "a batch's rounds (ns)", "crossover (slots)", "the engine's own crossover (slots)",
		"ten times more is not visible from (slots)", "rounds dominate 170 slots from (CPUs)",
	}}
	for _, m := range a.Machines {
		rows := a.of(m)
		if len(rows) == 0 {
			continue
		}
		x, own := rows[0].split, "-"
		if f, ok := fit(rows); ok {
			own = fmt.Sprintf("%.1f", f.crossover())
		}
		from := sort.Search(mostCPUs, func(n int) bool { return n >= 2 && rows[0].splitAt(n).crossover() >= float64(thread[0]) })
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

// costs is all of it.
func (a *answer) costs() experiments.Sheet {
	s := experiments.Sheet{Title: "What each size costs", Columns: []string{
		"machine", "slots", "interrupts per CPU", "memory (bytes)", "pages", "update (ms)", "exposure (ms)", "traps", "time in traps, all CPUs (ms)", "a trap (ns)", "stolen from a CPU (ms)", "burst on isolated CPUs (1/ms)",
	}}
	for _, r := range a.rows {
		cells := []string{r.machine.String(), r.Buffer.String(), fmt.Sprint(r.IPIsPerCPU), fmt.Sprint(r.BufferBytes), fmt.Sprint(r.BufferPages)}
		if m := r.Modelled; m != nil {
			trap := "-"
			if r.Traps > 0 {
				trap = fmt.Sprintf("%.0f", float64(r.TrapTime())/float64(r.Traps))
			}
			cells = append(cells, ms(m.Update), ms(m.Exposure), fmt.Sprint(r.Traps), ms(r.TrapTime()), trap, fmt.Sprintf("%.3g", m.StolenMean/1e6), fmt.Sprint(r.IsolatedBurst))
		} else {
			cells = append(cells, slices.Repeat([]string{"not timed"}, 7)...)
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// fronts is which sizes are on which front.
func (a *answer) fronts() experiments.Sheet {
	s := experiments.Sheet{Title: "Which sizes no other one beats", Columns: []string{"machine", "less of", "on the front", "dominated (by)"}}
	for _, m := range a.Machines {
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
