// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/ledger"
)

// answer is the finished rows, and the published figures.
type answer struct {
	*experiments.Study[Config, *row]
	figures
}

// Machines are the machines that there are rows of.
func (a *answer) Machines() []string {
	return spelling.Distinct(a.Rows, func(r *row) string { return r.Machine.String() })
}

// PublishedHours is how long the published interrupts were counted.
func (a *answer) PublishedHours() int { return publishedHours }

// allCalls is the published sum; its kinds stand behind a comma.
const allCalls = "calls to isolated CPUs in 3 h"

// kind is calls of one function to isolated CPUs.
type kind struct {
	Function, For string
	Calls         float64
	Source        string
}

// kinds ranks what hits isolated CPUs, as it is published.
func (f *figures) kinds() (out []kind) {
	rest := spelling.First(f.all, func(m figure) bool { return m.Measurement == allCalls }).Value
	for _, m := range f.all {
		if name, is := strings.CutPrefix(m.Measurement, allCalls+", "); is {
			out = append(out, kind{name, purposes[name], m.Value, m.Source})
			rest -= m.Value
		}
	}
	slices.SortStableFunc(out, func(x, y kind) int { return cmp.Compare(y.Calls, x.Calls) })
	return append(out, kind{"others", "not told", rest, ""})
}

// purposes are what functions are called for: arch/x86/mm/tlb.c, arch/x86/kernel/alternative.c,
// kernel/time/tick-sched.c.
var purposes = map[string]string{
	"do_flush_tlb_all":      "TLB, all of it: vmalloc, and protection of pages",
	"do_kernel_range_flush": "TLB, a range of the kernel's",
	"do_sync_core":          "text patching", // text_poke_sync, arch/x86/kernel/alternative.c
	"nohz_full_kick":        "timers: the tick is needed again",
}

// actions are what an operator switches in one go.
var actions = []ledger.Scenario{"static-key:sched_schedstats", "tracepoint:sched_switch", "kprobe", "fentry",
	"event-group:sched", "event-group:all", ledger.FunctionTracer, ledger.FunctionGraph}

// burst is what each isolated CPU takes when something is switched.
type burst struct {
	Action            ledger.Scenario
	On, Off, Patching int // of On, rounds of text patching
}

// Bursting is the kernel that bursts are of: the first of the built-in ones, which is of the architecture that the
// published calls are of.
func (a *answer) Bursting() string { return ledger.Names()[0] }

func (a *answer) bursts() (out []burst, err error) {
	k, err := ledger.Named(a.Bursting())
	if err != nil {
		return nil, err
	}
	for _, action := range actions {
		r, err := k.NewReplay(nil)
		if err != nil {
			return nil, err
		}
		b := burst{Action: action}
		for _, on := range []bool{true, false} {
			lines, err := r.Switch(string(action), on)
			if err != nil {
				return nil, err
			}
			for _, l := range lines {
				switch {
				case !on:
					b.Off += l.Rounds()
				case l.Cause.Syncs():
					b.Patching += l.Rounds()
					fallthrough
				default:
					b.On += l.Rounds()
				}
			}
		}
		out = append(out, b)
	}
	return out, nil
}
