// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results"
)

// event is an event of the kernel that tells of an interrupt.
type event struct {
	name     string // GROUP/NAME
	function string // the field with the function that is called; "" for none
	kind     string // of the cause; "" where the function tells
}

// senders tell of interrupts where they are sent, with the CPU that takes them in the field cpu:
// include/trace/events/csd.h (since Linux 6.5) and ipi.h (ipi_send_cpu since 6.4, for calls without a queue). In a
// kernel without them, tlb.h tells of flushes.
var (
	senders = []event{{name: "csd/csd_queue_cpu", function: "func"}, {name: "ipi/ipi_send_cpu", function: "callback"}}
	flushes = event{name: "tlb/tlb_flush", kind: "tlb"}
)

// timers expire on isolated CPUs: include/trace/events/timer.h. Every other CPU has too many.
var timers = []event{
	{name: "timer/timer_expire_entry", function: "function", kind: "timer"},
	{name: "timer/hrtimer_expire_entry", function: "function", kind: "timer"},
}

// Cause is why CPUs were interrupted, and by whom.
type Cause struct {
	Kind     string // text, tlb, membarrier, reschedule, timer, or function-call
	Function string // that was called on the other CPU; "" for none
	Task     string // the sender; "" where it is not known
	PID      int
}

// Tally is how often a cause interrupted a CPU, and how often an isolated one.
type Tally struct {
	Cause
	Times, Isolated int64
	Now             int64 // of Times, those since the reading before the last one
}

// mostCauses bounds the causes that are told apart. Senders of further ones are told by their names alone, and when there
// are as many of these, summed up.
const mostCauses = 1 << 10

// Causes hears why CPUs are interrupted. Whatever tells of it is switched on, which patches text itself: three rounds and
// more, before the first reading and after the last.
type Causes struct {
	// Who returns the name of a sender, by its task and PID; nil for the task's own name.
	Who func(task string, pid int) string

	source
	tallies map[Cause]*Tally
}

// source tells why CPUs were interrupted.
type source interface {
	// take hands over what came since the last time: a cause, how often it interrupted a CPU, and an isolated one.
	take(add func(c Cause, times, isolated int64)) error
	// Lost is how many events it could not tell of.
	Lost() int
	// Ran is how long programs in the kernel took so far, where it measures that.
	Ran() time.Duration
	// Close switches it off.
	Close() error
}

// Sources are what tells of causes: BPF programs that count in the kernel, and trace events, each a line that is read.
var Sources = []string{"bpf", "events"}

// Listen begins to hear causes from one of Sources, or from the first that the kernel lets us use where by is "".
func Listen(files tracefs.Files, isolated []int, by string) (c *Causes, used string, err error) {
	begin := map[string]func(tracefs.Files, []int) (source, error){"bpf": load, "events": hear}
	var failed []error
	for _, name := range Sources {
		if by != "" && by != name {
			continue
		}
		s, err := begin[name](files, isolated)
		if err == nil {
			return &Causes{source: s}, name, nil
		}
		failed = append(failed, fmt.Errorf("by %s: %w", name, err))
	}
	if len(failed) == 0 {
		return nil, "", fmt.Errorf("by %q: want one of %s", by, strings.Join(Sources, ", "))
	}
	lines := strings.ReplaceAll(errors.Join(failed...).Error(), "\n", "; ")
	return nil, "", errors.New(lines)
}

// Take reads what came since the last time, and tells the functions that were called, those with the most calls first:
// "do_sync_core 1971, rcu_barrier_handler 3".
func (c *Causes) Take() (calls string, err error) {
	for _, t := range c.tallies {
		t.Now = 0
	}
	count := map[string]int64{}
	err = c.take(func(cause Cause, times, isolated int64) {
		if cause.Task != "" && cause.Function != "" {
			count[cause.Function] += times
		}
		c.add(cause, times, isolated)
	})
	return mostOf(count), err
}

func (c *Causes) add(cause Cause, times, isolated int64) {
	if c.Who != nil && cause.Task != "" {
		if name := c.Who(cause.Task, cause.PID); name != cause.Task { // it stands for several threads
			cause.Task, cause.PID = name, 0
		}
	}
	if c.tallies == nil {
		c.tallies = map[Cause]*Tally{}
	}
	if c.tallies[cause] == nil && len(c.tallies) >= mostCauses {
		cause.PID = 0
	}
	if c.tallies[cause] == nil && len(c.tallies) >= 2*mostCauses {
		cause = Cause{Kind: cause.Kind, Task: "others"}
	}
	t := c.tallies[cause]
	if t == nil {
		t = &Tally{Cause: cause}
		c.tallies[cause] = t
	}
	t.Times += times
	t.Now += times
	t.Isolated += isolated
}

// Tallies are all causes so far: those that interrupted isolated CPUs most first, then any CPU.
func (c *Causes) Tallies() []*Tally {
	return slices.SortedFunc(maps.Values(c.tallies), func(a, b *Tally) int {
		return cmp.Or(cmp.Compare(b.Isolated, a.Isolated), cmp.Compare(b.Times, a.Times),
			cmp.Compare(fmt.Sprint(a.Cause), fmt.Sprint(b.Cause)))
	})
}

// kinds are told by the function that a CPU is asked to call (x86: arch/x86/kernel/alternative.c, arch/x86/mm/tlb.c,
// arch/x86/mm/pat/set_memory.c; mm/mmu_gather.c; kernel/sched/membarrier.c, core.c; kernel/time).
var kinds = []struct {
	kind      string
	functions *regexp.Regexp
}{
	{"text", regexp.MustCompile(`^(do_sync_core|ftrace_sync_ipi|ipi_remote_fence_i)$`)},
	{"tlb", regexp.MustCompile(`flush_tlb|cpa_flush|kernel_range_flush|^tlb_`)},
	{"membarrier", regexp.MustCompile(`^ipi_(mb|sync_core|rseq|sync_rq_state)$`)},
	{"reschedule", regexp.MustCompile(`^sched_ttwu_pending$`)},
	{"timer", regexp.MustCompile(`^(nohz_|retrigger_next_event|hrtimer)`)},
}

// kindOf is the kind of a call of a function. None is a reschedule.
func kindOf(function string) string {
	if function == "" {
		return "reschedule"
	}
	for _, k := range kinds {
		if k.functions.MatchString(function) {
			return k.kind
		}
	}
	return "function-call"
}

// emptiesQueue is called where functions wait in a queue, and is none of them (kernel/smp.c).
const emptiesQueue = "generic_smp_call_function_single_interrupt"

// mostCalls is how many functions a list names.
const mostCalls = 4

func mostOf(count map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	var parts []string
	rest := int64(0)
	for i, name := range names {
		if i < mostCalls {
			parts = append(parts, fmt.Sprintf("%s %d", name, count[name]))
		} else {
			rest += count[name]
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("others %d", rest))
	}
	return strings.Join(parts, ", ")
}

// CauseColumns are those of causes, TopColumns those of the last interval's.
var (
	CauseColumns = results.Declare[*Tally](declared, "causes", nil)
	TopColumns   = results.Declare[*Tally](declared, "top", nil)
)
