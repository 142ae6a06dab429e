// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/sched"
)

// The patchings of the interrupt table.
const (
	OwnBreakpoints = "ftrace-own-breakpoints" // Linux to 5.5: three rounds for everything
	Batched        = "text-poke-batched"      // what became Linux 5.6: three a batch
)

// InterruptCount is what one CPU's function call interrupts were before and after
// the function tracer was switched, October 2019.
type InterruptCount struct {
	Patching string `col:"patching,ftrace-own-breakpoints|text-poke-batched"`
	Action   string `col:"action,enable|disable"`
	CPU      int    `col:"cpu"`
	Before   int64  `col:"before"`
	After    int64  `col:"after"`
	Delta    int64  `col:"delta"`
	Source   string `col:"source,optional"`
}

// Interrupts is the table of those, with a row a CPU.
var Interrupts = &Set[InterruptCount]{Name: "function-call-interrupts-2019"}

// Check tells whether the delta follows.
func (c *InterruptCount) Check() (column, reason string) {
	if c.After-c.Before != c.Delta {
		return "delta", "is not after less before"
	}
	return "", ""
}

// Reading is the counts of all CPUs around one switch of the tracer.
type Reading struct {
	Patching, Action string
	Counts           []InterruptCount // CPUs ascend
}

// Name names the reading for people.
func (r *Reading) Name() string { return r.Patching + ", " + r.Action }

// Deltas are the interrupts that the CPUs took.
func (r *Reading) Deltas() []int64 {
	return spelling.Each(r.Counts, func(c InterruptCount) int64 { return c.Delta })
}

// Readings puts counts together that belong together, in the order in which they
// begin.
func Readings(counts []InterruptCount) (out []*Reading, err error) {
	for _, c := range counts {
		i := slices.IndexFunc(out, func(r *Reading) bool { return r.Patching == c.Patching && r.Action == c.Action })
		if i < 0 {
			i = len(out)
			out = append(out, &Reading{Patching: c.Patching, Action: c.Action})
		}
		r := out[i]
		if n := len(r.Counts); n > 0 && c.CPU <= r.Counts[n-1].CPU {
			return nil, fmt.Errorf("%s: cpu %d stands behind cpu %d: CPUs must ascend", r.Name(), c.CPU, r.Counts[n-1].CPU)
		}
		r.Counts = append(r.Counts, c)
	}
	return out, nil
}

// KeyUpdate is what switching a static key cost, June 2019.
type KeyUpdate struct {
	Measurement string `col:"measurement"`
	Entries     int64  `col:"entries"`
	Rounds      int64  `col:"rounds"`
	UpdateMS    Figure `col:"update_ms"`       // one update
	HandlerNS   Figure `col:"int3_handler_ns"` // one trap's handler
	Machine     string `col:"machine,maybe"`
	Source      string `col:"source,optional"`
}

// JumpLabels is the table of those.
var JumpLabels = &Set[KeyUpdate]{Name: "jump-label-2019"}

// Refcount is what an update cost with handlers that count themselves in one
// counter, or in one a CPU, 2025.
type Refcount struct {
	Measurement string `col:"measurement"`
	Entries     int64  `col:"entries"`
	Threads     int64  `col:"hardware_threads"`
	UpdateUS    Figure `col:"update_us"`
	ProgramNS   Figure `col:"program_ns"`
	Source      string `col:"source,optional"`
}

// Refcounts is the table of those.
var Refcounts = &Set[Refcount]{Name: "refcount-2025"}

// Isolated is one figure of the deferral of interrupts to isolated CPUs, 2025.
type Isolated struct {
	Measurement string  `col:"measurement"`
	Value       float64 `col:"value,zero"`
	Unit        string  `col:"unit,count|ns"`
	Source      string  `col:"source,optional"`
}

// Isolation is the table of those.
var Isolation = &Set[Isolated]{Name: "isolation-2025"}

// trigger is where both tables of the trigger benchmark are.
const trigger = "Menglong Dong, cover letter of bpf tracing multi-link support, v2, 2025-07-03, " +
	"20250703121521.1874196-1-dongml2@chinatelecom.cn; mitigations off"

// Mechanisms of the trigger benchmark that others are held against.
const (
	KernelCount = "kernel-count" // the loop that calls the function, with no tracer attached
	Fentry      = "fentry"
)

// Trigger is what bench_trigger.c of the kernel's bpf selftests counted: millions
// of calls a second with a program attached in one way.
type Trigger struct {
	Line      int     `col:"#"` // in the file
	Mechanism string  `col:"mechanism,key"`
	MPS       float64 `col:"mps"`             // 10^6 calls a second
	PlusMinus float64 `col:"plusminus,maybe"` // the bench's own, over the seconds of one run
}

// NS is what one iteration takes, in nanoseconds.
func (t *Trigger) NS() float64 { return 1000 / t.MPS }

// Triggers is the table of those: one run of everything.
var Triggers = &Set[Trigger]{Name: "trigger-bench", Source: trigger}

// Check holds the bench's own range against the figure.
func (t *Trigger) Check() (column, reason string) {
	if t.PlusMinus >= t.MPS {
		return "plusminus", "is not less than mps"
	}
	return "", ""
}

// TriggerRun is one of five runs of some mechanisms, one after the other.
type TriggerRun struct {
	Run int                `col:"run,key"`
	MPS map[string]float64 `col:"fentry_mps fentry_multi_mps fentry_multi_all_mps fexit_mps fexit_multi_mps fmodret_mps fmodret_multi_mps"`
}

// TriggerRuns is the table of those.
var TriggerRuns = &Set[TriggerRun]{Name: "tracing-multi-runs", Source: trigger}

// Of is what a run counted of a mechanism, as [Trigger] spells it: 10^6 calls a second. It is false
// where the runs had no such mechanism.
func (r *TriggerRun) Of(mechanism string) (mps float64, ok bool) {
	mps, ok = r.MPS[strings.ReplaceAll(mechanism, "-", "_")+"_mps"]
	return mps, ok
}

// HashLookup is the throughput of a probe on every function, with one of two
// tables to look its metadata up in.
type HashLookup struct {
	Line   int     `col:"#"` // in the file
	Bench  string  `col:"bench,key"`
	Table  string  `col:"table,key"`
	MPS    float64 `col:"mps"` // 10^6 calls a second
	Source string  `col:"source,optional"`
}

// NS is what one iteration takes, in nanoseconds.
func (h *HashLookup) NS() float64 { return 1000 / h.MPS }

// HashLookups is the table of those.
var HashLookups = &Set[HashLookup]{Name: "metadata-hash-2025"}

// AttachTime is how long attaching to many functions took.
type AttachTime struct {
	Case      string  `col:"case,key"`
	Functions int64   `col:"functions,positive"`
	AttachS   float64 `col:"attach_s"`
	DetachS   Figure  `col:"detach_s"` // not known where only attaching was timed, or both together
	Note      string  `col:"note,maybe"`
	Source    string  `col:"source,optional"`
}

// AttachTimes is the table of those.
var AttachTimes = &Set[AttachTime]{Name: "attach-times"}

// StatedWait is how many seconds a wait for all tasks takes, as the author of the two
// measurements of [OpsTimes] says: about 100 ms (bpf-next, 2026-01).
const StatedWait = 0.1

// OpsTimes are the times of a case with an ops for each trampoline, whose detaching waits
// for each, and of the same case with one ops.
type OpsTimes struct{ Each, One *AttachTime }

// TimesByOps are all of those among some times.
func TimesByOps(times []AttachTime) (out []OpsTimes) {
	for i := range times {
		for j := range times {
			each, one := &times[i], &times[j]
			if each.Functions == one.Functions && strings.HasSuffix(each.Case, "per-trampoline ops") &&
				strings.HasSuffix(one.Case, "single direct ops") {
				out = append(out, OpsTimes{each, one})
			}
		}
	}
	return out
}

// WaitMS is [StatedWait] in milliseconds.
func (OpsTimes) WaitMS() float64 { return 1e3 * StatedWait }

// Hit is by how much a program's throughput falls when it is attached in one way.
type Hit struct {
	Mechanism string  `col:"mechanism,key"`
	Percent   float64 `col:"performance_hit_percent,zero"` // of the throughput without
}

// Check bounds the share.
func (h *Hit) Check() (column, reason string) {
	if h.Percent >= 100 {
		return "performance_hit_percent", "want a share of the throughput, below 100"
	}
	return "", ""
}

// Slowdown is the time with it over the time without: throughput that falls by p %
// means time x 1/(1 - p/100).
func (h *Hit) Slowdown() float64 { return 1 / (1 - h.Percent/100) }

// Hits is the table of those.
var Hits = &Set[Hit]{
	Name: "rpi4-bench-hit",
	Source: "Florent Revest, RFC about BPF tracing for arm64 using fprobe, bpf list, 2022-11-08, quoted 2022-11-17; " +
		"Raspberry Pi 4, BPF bench",
}

// MultiCalls is what many calls of one function took while so many functions were
// hooked in one way.
type MultiCalls struct {
	Mechanism string  `col:"mechanism,key"`
	Functions int64   `col:"functions,key,positive"`
	Table     string  `col:"table,key,maybe,hash|padding"` // that each call is looked up in; "" where the source does not say
	Calls     int64   `col:"calls,positive"`
	TotalMS   float64 `col:"total_ms"`
	Source    string  `col:"source,optional"`
}

// NS is what one call takes, in nanoseconds.
func (m *MultiCalls) NS() float64 { return m.TotalMS * 1e6 / float64(m.Calls) }

// MultiCallTimes is the table of those.
var MultiCallTimes = &Set[MultiCalls]{Name: "tracing-multi-calls-2025"}

// The directions of attaching.
const (
	Attach = "attach"
	Detach = "detach"
)

// AttachWait is what a detach took in a loop of them.
type AttachWait struct {
	Kernel string `col:"kernel,key"`
	WaitMS int64  `col:"wait_ms"`
	Tasks  bool   `col:"tasks"` // it waits until every task has scheduled
	Source string `col:"source,optional"`
}

// AttachWaits is the table of those.
var AttachWaits = &Set[AttachWait]{Name: "attach-waits"}

// AttachInterrupts is how many interrupts the quietest receiver of a real kernel
// took: PerFunction times the functions, PerBatch times their batches of 256, and
// Fixed.
type AttachInterrupts struct {
	Kernel      string `col:"kernel,key"`
	Way         string `col:"way,key"`
	Direction   string `col:"direction,key,attach|detach"`
	PerFunction int64  `col:"per_function"`
	PerBatch    int64  `col:"per_batch"`
	Fixed       int64  `col:"fixed"`
	Background  bool   `col:"background"` // and a few wakeups of RCU and worker threads
	Source      string `col:"source,optional"`
}

// At is what a receiver takes for n functions.
func (a *AttachInterrupts) At(n int) int {
	batches := sched.Batches(n, sched.Ascending, sched.Buffer{Slots: pageOfPatches})
	return int(a.PerFunction)*n + int(a.PerBatch)*batches + int(a.Fixed)
}

// pageOfPatches is how many patches the vector of the measured kernels holds
// (TP_VEC_MAX, arch/x86/kernel/alternative.c, Linux 6.12).
const pageOfPatches = 256

// AttachFormulas is the table of those.
var AttachFormulas = &Set[AttachInterrupts]{Name: "attach-interrupts"}

// AttachReading is a single reading of that.
type AttachReading struct {
	Kernel     string `col:"kernel,key"`
	Way        string `col:"way,key"`
	Direction  string `col:"direction,key,attach|detach"`
	Functions  int64  `col:"functions,key,positive"`
	Interrupts int64  `col:"interrupts"`
	Source     string `col:"source,optional"`
}

// AttachReadings is the table of those.
var AttachReadings = &Set[AttachReading]{Name: "attach-readings"}

// The places that a reach counts from, and the shapes of sites.
const (
	FromSite  = "site"  // each site for itself
	FromEntry = "entry" // ftrace_caller, for all sites alike
	WordSite  = "word"  // one instruction toggles
	PairSite  = "pair"  // two instructions toggle together
)

// Reach is the distance at which a site may call its target directly.
type Reach struct {
	Arch     string `col:"arch"`
	Layout   string `col:"layout,word|pair"`
	From     string `col:"from,site|entry"`
	Behind   int64  `col:"behind_bytes"` // bytes behind the site's first byte at which counting begins
	Down     int64  `col:"down_bytes"`   // bytes below that, the end included
	Up       int64  `col:"up_bytes"`     // and above
	Releases string `col:"releases"`     // of Linux that have such sites
	What     string `col:"what"`         // instructions
	Source   string `col:"source"`
}

// Reaches is the table of those.
var Reaches = &Set[Reach]{Name: "branch-reach"}

// UprobeReading is what one idle CPU took while probes in programs were hit for the
// first time, or removed.
type UprobeReading struct {
	Release    string `col:"release,key"`
	Insn       string `col:"insn,key"`
	Phase      string `col:"phase,key,first-hit|disable"`
	Sites      int64  `col:"sites,key,positive"`
	Processes  int64  `col:"processes,key,positive"`
	Interrupts int64  `col:"interrupts"`
	Source     string `col:"source,optional"`
}

// UprobeReadings is the table of those.
var UprobeReadings = &Set[UprobeReading]{Name: "uprobe-interrupts"}
