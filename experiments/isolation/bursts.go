// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/kernels/ledger"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

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
