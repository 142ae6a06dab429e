// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// answer is what the rows say that were finished, and what is published.
type answer struct {
	*experiments.Study[Config, *row]
	figures
}

// measured is the figure of that name, 0 where nobody has published it.
func (f *figures) measured(name string) published.Isolated {
	return experiments.First(f.all, func(m published.Isolated) bool { return m.Measurement == name })
}

// usual is the row that interrupts everybody, or the lazy one, of one machine at the fitted rate; nil where there is none
// yet.
func (a *answer) usual(machine string, lazy bool) *row {
	return experiments.First(a.Rows, func(r *row) bool {
		return r.Machine.String() == machine && r.fitted && r.Lazy == lazy && (!lazy || r.Usual)
	})
}

// Machines are the machines that there are rows of.
func (a *answer) Machines() []string {
	return experiments.Distinct(a.Rows, func(r *row) string { return r.Machine.String() })
}

// textPatching is how much of what hits isolated CPUs is rounds of text patching.
type textPatching struct{ All, Text published.Isolated }

// Percent is its share.
func (t *textPatching) Percent() float64 { return 100 * t.Text.Value / t.All.Value }

// TextPatching is nil where it is not published.
func (a *answer) TextPatching() *textPatching {
	t := &textPatching{a.measured(allCalls), a.measured(textCalls)}
	if t.All.Value <= 0 || t.Text.Value <= 0 {
		return nil
	}
	return t
}

// PublishedHours is how long the published interrupts were counted.
func (a *answer) PublishedHours() int { return publishedHours }

// comparisons holds what was published against the machines that it is of.
func (a *answer) comparisons() (out []experiments.Comparison) {
	if len(a.Rows) > 0 && a.Config.Hours == publishedHours {
		everybody, lazy := a.usual(a.Machines()[0], false), a.usual(a.Machines()[0], true)
		if everybody != nil && everybody.isolated() == a.Isolated() {
			out = append(out,
				experiments.Comparison{What: a.total.Measurement, Published: a.total.Value, Ours: float64(everybody.IPIs),
					Source: a.total.Source},
				experiments.Comparison{What: a.Each.Measurement, Published: a.Each.Value,
					Ours: float64(everybody.IPIs) / float64(everybody.isolated()), Source: a.Each.Source})
			if lazy != nil && a.left.Measurement != "" {
				out = append(out, experiments.Comparison{
					What:      fmt.Sprintf("%s (here: %s entries a second)", a.left.Measurement, results.Short(lazy.entries)),
					Published: a.left.Value, Ours: float64(lazy.IPIs), Exact: true, Source: a.left.Source})
			}
		}
	}
	for _, name := range a.Machines() {
		r := a.usual(name, true)
		for _, m := range a.all {
			if r == nil || !strings.Contains(strings.ToLower(m.Measurement), " "+strings.ReplaceAll(r.Machine.Name, "gold-",
				"gold ")+",") {
				continue
			}
			ours := r.Before()
			if strings.HasSuffix(m.Measurement, "after") {
				ours = r.After()
			}
			out = append(out, experiments.Comparison{What: m.Measurement + ", ns", Published: m.Value, Ours: ours,
				Source: m.Source})
		}
	}
	return out
}

// allCalls is the published sum; its kinds stand behind a comma.
const allCalls = "calls to isolated CPUs in 3 h"

// textCalls is what a round of text patching calls (text_poke_sync, arch/x86/kernel/alternative.c).
const textCalls = allCalls + ", do_sync_core"

// Kinds ranks what hits isolated CPUs, as it is published.
func (a *answer) Kinds() form.Table {
	s := form.Table{
		Title:   "Published " + allCalls + ", by what was called",
		Columns: []string{"function", "what for", "calls", "share"},
	}
	all, rest := a.measured(allCalls).Value, a.measured(allCalls).Value
	var kinds []published.Isolated
	for _, m := range a.all {
		if strings.HasPrefix(m.Measurement, allCalls+", ") {
			kinds = append(kinds, m)
			rest -= m.Value
		}
	}
	if all <= 0 {
		return s
	}
	slices.SortStableFunc(kinds, func(x, y published.Isolated) int { return cmp.Compare(y.Value, x.Value) })
	for _, m := range kinds {
		f := strings.TrimPrefix(m.Measurement, allCalls+", ")
		s.Rows = append(s.Rows, []string{f, purposes[f], results.Short(m.Value), percent(m.Value / all)})
	}
	s.Rows = append(s.Rows, []string{"others", "not told", results.Short(rest), percent(rest / all)})
	return s
}

func percent(share float64) string { return results.Short(100*share) + " %" }

// purposes are what functions are called for: arch/x86/mm/tlb.c, arch/x86/kernel/alternative.c,
// kernel/time/tick-sched.c.
var purposes = map[string]string{
	"do_flush_tlb_all":      "TLB, all of it: vmalloc, and protection of pages",
	"do_kernel_range_flush": "TLB, a range of the kernel's",
	"do_sync_core":          "text patching",
	"nohz_full_kick":        "timers: the tick is needed again",
}

// actions are what an operator switches in one go.
var actions = []ledger.Scenario{"static-key:sched_schedstats", "tracepoint:sched_switch", "kprobe", "fentry",
	"event-group:sched", "event-group:all", ledger.FunctionTracer, ledger.FunctionGraph}

// Bursts is what each isolated CPU takes when something is switched on the first of the
// built-in kernels, which is of the architecture that the published calls are of.
func (a *answer) Bursts() (form.Table, error) {
	k, err := ledger.Named(ledger.Names()[0])
	if err != nil {
		return form.Table{}, err
	}
	s := form.Table{
		Title: "In one burst, on each isolated CPU, kernel " + k.Name(),
		Columns: []string{"action", "on", "off", "of them rounds of text patching, on",
			"of the published text patching of 3 h"},
	}
	text := a.measured(textCalls).Value
	for _, action := range actions {
		r, err := k.NewReplay(nil)
		if err != nil {
			return s, err
		}
		var sums [2]int
		patching := 0
		for i := range sums {
			lines, err := r.Switch(string(action), i == 0)
			if err != nil {
				return s, err
			}
			for _, l := range lines {
				sums[i] += l.Rounds()
				if i == 0 && l.Cause.Syncs() {
					patching += l.Rounds()
				}
			}
		}
		line := []string{string(action), fmt.Sprint(sums[0]), fmt.Sprint(sums[1]), fmt.Sprint(patching), ""}
		if text > 0 {
			line[4] = results.Short(float64(sums[0])/text) + " times"
		}
		s.Rows = append(s.Rows, line)
	}
	return s, nil
}
