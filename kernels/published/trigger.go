// SPDX-License-Identifier: Apache-2.0

package published

import "strings"

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
	Line int                `col:"#"`
	Run  int                `col:"run,key"`
	MPS  map[string]float64 `col:"fentry_mps fentry_multi_mps fentry_multi_all_mps fexit_mps fexit_multi_mps fmodret_mps fmodret_multi_mps"`
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
	Line      int     `col:"#"` // in the file
	Case      string  `col:"case,key"`
	Functions int64   `col:"functions,positive"`
	AttachS   float64 `col:"attach_s"`
	DetachS   Figure  `col:"detach_s"` // not known where only attaching was timed, or both together
	Note      string  `col:"note,maybe"`
	Source    string  `col:"source,optional"`
}

// AttachTimes is the table of those.
var AttachTimes = &Set[AttachTime]{Name: "attach-times"}

// Hit is by how much a program's throughput falls when it is attached in one way.
type Hit struct {
	Line      int     `col:"#"` // in the file
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
