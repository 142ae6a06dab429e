package directops

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished.
type answer struct {
	asked  int
	rows   []*row
	attach []*attachRow
	times  []published.AttachTime
}

// pair is the same calls with an ops each and with one for all.
type pair struct{ each, one *row }

// pairs are those with the most trampolines, in the order of rows.
func (a *answer) pairs() (out []pair) {
	most := 0
	for _, r := range a.rows {
		most = max(most, r.trampolines)
	}
	for _, each := range a.rows {
		if each.setup.one || each.trampolines != most {
			continue
		}
		for _, one := range a.rows {
			want := each.setup
			want.one = true
			if one.arch == each.arch && one.setup == want && one.trampolines == most {
				out = append(out, pair{each, one})
			}
		}
	}
	return out
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d set-ups were counted.", len(a.rows), a.asked)
	}
	pairs := a.pairs()
	r.Headline = headline(pairs)
	r.Answer = paragraphs(pairs)
	r.Sheets = []experiments.Sheet{callSheet(pairs), a.attachSheet()}
	r.Measured = []string{
		"Loads, lookups and list entries of calls: counted, exactly, in the mean over up to 16 functions of the first ones of a real kernel's table; what is a load is said in package tracers/dispatch.",
		"Rounds, entries and waits of attaching: counted, exactly (experiment attach).",
	}
	r.Modelled = []string{
		"Times of attaching, from the calibration that is named.",
		"In range means that the instruction reaches the trampoline. Where a site can only call next to ftrace_caller, no real trampoline is: experiment reach.",
		"One ops for all on instruction sets whose sites name their ops is not in any kernel: it is what taking the field away would mean there.",
		"On the slow path where sites have no literal the entry loads function_trace_op; literal and ops are not loaded.",
	}
	r.Beside = a.beside()
	return experiments.NewAnswer(name, r, chart(pairs).Picture(),
		results.Document{Name: "attach.csv", Write: func(w io.Writer) error {
			t, err := attachTable(a.attach)
			if err != nil {
				return err
			}
			return results.WriteCSV(w, t)
		}})
}

// headline compares the slow path, where the difference is largest.
func headline(pairs []pair) string {
	for _, p := range pairs {
		if p.each.setup.slow {
			return fmt.Sprintf("With %s trampolines a call on the slow path goes over %s ops if each has one, and over %s if one has all; the fast path in branch range stays at %s loads",
				plots.Thousands(float64(p.each.trampolines)), plots.Thousands(p.each.entries), plots.Thousands(p.one.entries), number(fast(pairs, p).each.loads))
		}
	}
	return ""
}

// fast is the fast path in branch range of the same instruction set.
func fast(pairs []pair, like pair) pair {
	i := slices.IndexFunc(pairs, func(p pair) bool { return p.each.arch == like.each.arch && p.each.setup == setup{} })
	return pairs[i]
}

// number prints a mean with one digit, where it has any.
func number(f float64) string { return strconv.FormatFloat(math.Round(10*f)/10, 'f', -1, 64) }

func paragraphs(pairs []pair) (out []string) {
	var far []string
	for _, p := range pairs {
		if s := p.each.setup; s.far && !s.slow {
			far = append(far, fmt.Sprintf("%s: %s loads, registers saved: %v; with one ops %s loads, %s of them lookups by address, registers saved: %v",
				p.each.arch.Traits().Name, number(p.each.loads), p.each.saves, number(p.one.loads), number(p.one.lookups), p.one.saves))
		}
	}
	out = append(out,
		"In branch range the fast path does not change: the site calls the trampoline, and no ops is looked at.",
		"On the slow path every ops of the list is asked whether it traces the function, also those of all other trampolines. One ops for all makes that one question and a lookup: the trampoline's address comes from the table of direct calls and not from the ops.")
	if len(far) > 0 {
		out = append(out, "What the field was for: where trampolines lie out of branch range (experiment reach), the entry takes the trampoline from the ops that the site's literal names, before it saves anything. "+
			"One load of the ops gives everything that depends on it, so that exchanging the literal exchanges all of it at once. Without the field the entry has to save registers, call the ops' function and look the address up, for every call. "+strings.Join(far, ". ")+".")
	}
	return append(out, "Attaching one by one is no cheaper with one ops: a round for the trampoline and three for the record, and more entries are copied, as the filter grows with every function. What it saves is the wait on detaching, as the ops is never freed; and it allows one update for all functions.")
}

func callSheet(pairs []pair) experiments.Sheet {
	s := experiments.Sheet{Title: "What a call takes: an ops for each trampoline, one for all", Columns: []string{"arch", "range", "path", "trampolines", "loads", "lookups", "list entries", "registers saved", "in a kernel"}}
	for _, p := range pairs {
		s.Rows = append(s.Rows, []string{
			p.each.arch.Traits().Name, p.each.setup.place(), p.each.setup.path(), fmt.Sprint(p.each.trampolines),
			number(p.each.loads) + ", " + number(p.one.loads), number(p.each.lookups) + ", " + number(p.one.lookups), number(p.each.entries) + ", " + number(p.one.entries),
			fmt.Sprintf("%v, %v", p.each.saves, p.one.saves), fmt.Sprintf("%v, %v", p.each.inKernel, p.one.inKernel),
		})
	}
	return s
}

func (a *answer) attachSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "What attaching takes", Columns: []string{"kernel", "way", "functions", "ops", "rounds on, off", "entries copied", "waits", "modelled on", "modelled off", "calibration"}}
	for _, r := range a.attach {
		s.Rows = append(s.Rows, []string{r.kernel.Name, r.way.Name, fmt.Sprint(r.functions), fmt.Sprint(r.on.Ops), fmt.Sprintf("%d, %d", r.on.AllRounds(), r.off.AllRounds()),
			fmt.Sprint(r.on.Copied + r.off.Copied), fmt.Sprint(r.off.Waits), seconds(r.onNS), seconds(r.offNS), r.machine})
	}
	return s
}

func seconds(ns float64) string { return fmt.Sprintf("%.3g s", ns/1e9) }

// statedWait is what a wait for all tasks takes, as the author of the
// measurements says: about 100 ms (bpf-next, 2026-01).
const statedWait = 0.1

// beside is what one ops saves when a program is attached to some functions and
// detached again: a wait each.
func (a *answer) beside() (out []experiments.Beside) {
	for _, with := range a.times {
		for _, without := range a.times {
			if with.Functions != without.Functions || !strings.HasSuffix(with.Case, "per-trampoline ops") || !strings.HasSuffix(without.Case, "single direct ops") {
				continue
			}
			out = append(out, experiments.Beside{
				What:      fmt.Sprintf("seconds that one ops saves for %d functions, and a wait of %g ms for each", with.Functions, 1e3*statedWait),
				Published: with.AttachS - without.AttachS, Ours: float64(with.Functions) * statedWait, Source: with.Source,
			})
		}
	}
	return out
}

// chart is the loads of a call with the most trampolines.
func chart(pairs []pair) *plots.Chart {
	c := &plots.Chart{Title: "One ops makes the slow path short, and the far path long", X: plots.Axis{Label: "loads of a call", Log: true}, Y: plots.Axis{Names: []string{}}}
	each, one := plots.Series{Name: "an ops for each trampoline", Kind: plots.Lying}, plots.Series{Name: "one ops for all", Kind: plots.Lying}
	for i, p := range pairs {
		c.Subtitle = fmt.Sprintf("%s trampolines.", plots.Thousands(float64(p.each.trampolines)))
		c.Y.Names = append(c.Y.Names, fmt.Sprintf("%s, %s, %s", p.each.arch.Traits().Name, p.each.setup.place(), p.each.setup.path()))
		for _, side := range []struct {
			to *plots.Series
			r  *row
		}{{&each, p.each}, {&one, p.one}} {
			side.to.X, side.to.Y = append(side.to.X, side.r.loads), append(side.to.Y, float64(i))
			side.to.Labels = append(side.to.Labels, label(side.r))
		}
	}
	if len(pairs) > 0 {
		c.Series = []plots.Series{each, one}
	}
	c.Height = vg.Length(36+10*max(len(pairs), 4)) * vg.Millimeter
	return c
}

// label is the loads, with a remark where no kernel does it so.
func label(r *row) string {
	text := plots.Thousands(math.Round(10*r.loads) / 10)
	if !r.inKernel {
		text += " (in no kernel)"
	}
	return text
}
