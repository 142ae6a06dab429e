// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/kernels/tracefs"
	"github.com/textpoke/textpoke/results"
)

// senders are events that name the sender of an interrupt and its function: include/trace/events/csd.h (since Linux 6.5)
// and ipi.h (ipi_send_cpu since 6.4, for calls without a queue). In a kernel without them, tlb.h tells of flushes.
var senders = []string{"csd/csd_queue_cpu", "ipi/ipi_send_cpu"}

const flushes = "tlb/tlb_flush"

// timers expire on isolated CPUs: include/trace/events/timer.h.
var timers = []string{"timer/timer_expire_entry", "timer/hrtimer_expire_entry"}

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
}

// mostCauses bounds the causes that are told apart. Senders of further ones are told by their names alone, and when there
// are as many of these, summed up.
const mostCauses = 1 << 10

// Causes hears why CPUs are interrupted, from trace events in an instance of its own. Switching these on and off patches
// text itself: three rounds and more, before the first reading and after the last.
type Causes struct {
	// Who returns the name of a sender, by its task and PID; nil for the task's own name.
	Who func(task string, pid int) string

	files    tracefs.Files
	dir      string
	pipe     io.ReadCloser
	rest     []byte // of a line that is not whole yet
	isolated []int
	tallies  map[Cause]*Tally
	lost     int
}

// Listen switches the events on.
func Listen(files tracefs.Files, isolated []int) (c *Causes, err error) {
	c = &Causes{files: files, dir: fmt.Sprintf("instances/textpoke-%d", os.Getpid()), isolated: isolated}
	if _, err := files.Mkdir(c.dir); err != nil {
		return nil, fmt.Errorf("names: %w (root can, where tracefs is mounted)", err)
	}
	on := func(event string) bool { return files.Write(c.dir+"/events/"+event+"/enable", "1", true) == nil }
	heard := false
	for _, e := range senders {
		heard = on(e) || heard
	}
	if !heard && !on(flushes) {
		err = fmt.Errorf("names: the kernel has none of the events %s (Linux 6.4 and later), %s",
			strings.Join(senders, ", "), flushes)
	}
	if err == nil {
		c.pipe, err = files.Open(c.dir + "/trace_pipe")
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	var where []string
	for _, cpu := range isolated {
		where = append(where, fmt.Sprint("CPU == ", cpu))
	}
	for _, e := range timers { // every other CPU has too many
		if len(where) > 0 && files.Write(c.dir+"/events/"+e+"/filter", strings.Join(where, " || "), true) == nil {
			on(e)
		}
	}
	return c, nil
}

// Close switches them off again.
func (c *Causes) Close() (err error) {
	if c.pipe != nil {
		err = c.pipe.Close()
	}
	if err = errors.Join(err, c.files.Remove(c.dir)); err != nil {
		return fmt.Errorf("names: %w", err)
	}
	return nil
}

// Take reads what came since the last time, and tells the functions that were called, those with the most calls first:
// "do_sync_core 1971, rcu_barrier_handler 3".
func (c *Causes) Take() (calls string, err error) {
	count, b := map[string]int64{}, make([]byte, 1<<16)
	for err == nil {
		var n int
		if n, err = c.pipe.Read(b); n > 0 {
			c.hear(b[:n], count)
		}
	}
	if !errors.Is(err, tracefs.ErrNothing) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("names: %w", err)
	}
	return mostOf(count), nil
}

// hear counts the causes of a text's lines. The last line may not be whole.
func (c *Causes) hear(text []byte, count map[string]int64) {
	c.rest = append(c.rest, text...)
	whole := bytes.LastIndexByte(c.rest, '\n') + 1
	for line := range bytes.Lines(c.rest[:whole]) {
		l := tracefs.ParseLine(strings.TrimRight(string(line), "\n"))
		c.lost += l.Lost
		if cause, cpu, ok := causeOf(&l); ok {
			if cause.Task != "" && cause.Function != "" {
				count[cause.Function]++
			}
			c.add(cause, cpu)
		}
	}
	if c.rest = append(c.rest[:0], c.rest[whole:]...); len(c.rest) > 1<<16 { // a line without an end
		c.rest = c.rest[:0]
	}
}

func (c *Causes) add(cause Cause, cpu int) {
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
	t.Times++
	if slices.Contains(c.isolated, cpu) {
		t.Isolated++
	}
}

// Tallies are all causes so far: those that interrupted isolated CPUs most first, then any CPU.
func (c *Causes) Tallies() []*Tally {
	return slices.SortedFunc(maps.Values(c.tallies), func(a, b *Tally) int {
		return cmp.Or(cmp.Compare(b.Isolated, a.Isolated), cmp.Compare(b.Times, a.Times),
			cmp.Compare(fmt.Sprint(a.Cause), fmt.Sprint(b.Cause)))
	})
}

// Lost is how many events the kernel overwrote before they were read.
func (c *Causes) Lost() int { return c.lost }

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

var eventField = regexp.MustCompile(`(\w+)=([^\s+]+)`)

// causeOf is what a line says, and the CPU that is interrupted. The function that empties a queue is not the called one.
func causeOf(l *tracefs.Line) (c Cause, cpu int, ok bool) {
	fields := map[string]string{}
	for _, f := range eventField.FindAllStringSubmatch(l.Detail, -1) {
		fields[f[1]] = f[2]
	}
	cpu, c.Task, c.PID = l.CPU, l.Task, l.PID
	switch l.Name {
	case "csd_queue_cpu", "ipi_send_cpu":
		c.Function = cmp.Or(fields["func"], fields["callback"])
		var err error
		if cpu, err = strconv.Atoi(fields["cpu"]); err != nil || c.Function == "generic_smp_call_function_single_interrupt" {
			return c, 0, false
		}
		if c.Kind = "function-call"; c.Function == "0x0" {
			return Cause{Kind: "reschedule", Task: l.Task, PID: l.PID}, cpu, true
		}
		for _, k := range kinds {
			if k.functions.MatchString(c.Function) {
				c.Kind = k.kind
			}
		}
		return c, cpu, true
	case "tlb_flush": // on the CPU that flushes
		return Cause{Kind: "tlb"}, cpu, strings.Contains(l.Detail, "remote shootdown")
	case "timer_expire_entry", "hrtimer_expire_entry":
		return Cause{Kind: "timer", Function: fields["function"]}, cpu, true
	}
	return c, 0, false
}

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

// CauseColumns are those of causes.
var CauseColumns = results.Declare[*Tally](declared, "causes", nil)
