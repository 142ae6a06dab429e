// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"
	"slices"
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
func (r *Reading) Deltas() (out []int64) {
	for _, c := range r.Counts {
		out = append(out, c.Delta)
	}
	return out
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
