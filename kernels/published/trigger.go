// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"strings"
)

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
	Line           int // in the file
	Mechanism      string
	MPS, PlusMinus float64 // 10^6 calls a second; PlusMinus is the bench's own, over the seconds of one run
}

// NS is what one iteration takes, in nanoseconds.
func (t *Trigger) NS() float64 { return 1000 / t.MPS }

// Triggers is the table of those: one run of everything.
var Triggers = &Set[Trigger]{
	Name: "trigger-bench", Source: trigger,
	columns: []string{"mechanism", "mps", "plusminus"},
	parse: func(c *cells) Trigger {
		t := Trigger{Line: c.line, Mechanism: c.words("mechanism"), MPS: c.above0("mps"),
			PlusMinus: c.figure("plusminus").Value}
		if t.PlusMinus >= t.MPS {
			c.fail("plusminus", "is not less than mps")
		}
		return t
	},
	key: func(t Trigger) string { return t.Mechanism },
}

// TriggerRun is one of five runs of some mechanisms, one after the other.
type TriggerRun struct {
	Line, Run int
	MPS       map[string]float64 // 10^6 calls a second, by mechanism as [Trigger] spells it
}

// runColumns are the mechanisms of the runs.
var runColumns = []string{"run", "fentry_mps", "fentry_multi_mps", "fentry_multi_all_mps", "fexit_mps",
	"fexit_multi_mps", "fmodret_mps", "fmodret_multi_mps"}

// TriggerRuns is the table of those.
var TriggerRuns = &Set[TriggerRun]{
	Name: "tracing-multi-runs", Source: trigger,
	columns: runColumns,
	parse: func(c *cells) TriggerRun {
		r := TriggerRun{Line: c.line, Run: int(c.count("run")), MPS: map[string]float64{}}
		for _, column := range runColumns[1:] {
			r.MPS[mechanism(column)] = c.above0(column)
		}
		return r
	},
	key: func(r TriggerRun) string { return fmt.Sprintf("run %d", r.Run) },
}

// mechanism is the name of the mechanism that a column of the runs is about.
func mechanism(column string) string {
	return strings.ReplaceAll(strings.TrimSuffix(column, "_mps"), "_", "-")
}

// HashLookup is the throughput of a probe on every function, with one of two
// tables to look its metadata up in.
type HashLookup struct {
	Line         int // in the file
	Bench, Table string
	MPS          float64 // 10^6 calls a second
	Source       string
}

// NS is what one iteration takes, in nanoseconds.
func (h *HashLookup) NS() float64 { return 1000 / h.MPS }

// HashLookups is the table of those.
var HashLookups = &Set[HashLookup]{
	Name:    "metadata-hash-2025",
	columns: []string{"bench", "table", "mps", sourceColumn},
	parse: func(c *cells) HashLookup {
		return HashLookup{Line: c.line, Bench: c.words("bench"), Table: c.words("table"), MPS: c.above0("mps"),
			Source: c.source()}
	},
	key: func(h HashLookup) string { return h.Bench + ", " + h.Table },
}

// AttachTime is how long attaching to many functions took.
type AttachTime struct {
	Line         int // in the file
	Case         string
	Functions    int64
	AttachS      float64
	DetachS      Figure // not known where only attaching was timed, or both together
	Note, Source string
}

// AttachTimes is the table of those.
var AttachTimes = &Set[AttachTime]{
	Name:    "attach-times",
	columns: []string{"case", "functions", "attach_s", "detach_s", "note", sourceColumn},
	parse: func(c *cells) AttachTime {
		return AttachTime{
			Line: c.line, Case: c.words("case"), Functions: c.positive("functions"), AttachS: c.above0("attach_s"),
			DetachS: c.figure("detach_s"), Note: c.text("note"), Source: c.source(),
		}
	},
	key: func(a AttachTime) string { return a.Case },
}

// Hit is by how much a program's throughput falls when it is attached in one way.
type Hit struct {
	Line      int // in the file
	Mechanism string
	Percent   float64 // of the throughput without
}

// Slowdown is the time with it over the time without: throughput that falls by p %
// means time x 1/(1 - p/100).
func (h *Hit) Slowdown() float64 { return 1 / (1 - h.Percent/100) }

// Hits is the table of those.
var Hits = &Set[Hit]{
	Name: "rpi4-bench-hit",
	Source: "Florent Revest, RFC about BPF tracing for arm64 using fprobe, bpf list, 2022-11-08, quoted 2022-11-17; " +
		"Raspberry Pi 4, BPF bench",
	columns: []string{"mechanism", "performance_hit_percent"},
	parse: func(c *cells) Hit {
		p := c.figure("performance_hit_percent")
		if !p.Known || p.Value >= 100 {
			c.fail("performance_hit_percent", "want a share of the throughput, below 100")
		}
		return Hit{Line: c.line, Mechanism: c.words("mechanism"), Percent: p.Value}
	},
	key: func(h Hit) string { return h.Mechanism },
}
