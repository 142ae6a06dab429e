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
	Patching, Action     string // Action is enable or disable
	CPU                  int
	Before, After, Delta int64
	Source               string
}

// Interrupts is the table of those, with a row a CPU.
var Interrupts = &Set[InterruptCount]{
	Name:    "function-call-interrupts-2019",
	columns: []string{"patching", "action", "cpu", "before", "after", "delta", "source"},
	parse: func(c *cells) InterruptCount {
		r := InterruptCount{
			Patching: c.oneOf("patching", OwnBreakpoints, Batched), Action: c.oneOf("action", "enable", "disable"),
			CPU: int(c.count("cpu")), Before: c.count("before"), After: c.count("after"), Delta: c.count("delta"),
			Source: c.source(),
		}
		if r.After-r.Before != r.Delta {
			c.fail("delta", "is not after less before")
		}
		return r
	},
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
	Measurement         string
	Entries, Rounds     int64
	UpdateMS, HandlerNS Figure // one update; one trap's handler
	Machine, Source     string
}

// JumpLabels is the table of those.
var JumpLabels = &Set[KeyUpdate]{
	Name:    "jump-label-2019",
	columns: []string{"measurement", "entries", "rounds", "update_ms", "int3_handler_ns", "machine", "source"},
	parse: func(c *cells) KeyUpdate {
		return KeyUpdate{
			Measurement: c.words("measurement"), Entries: c.count("entries"), Rounds: c.count("rounds"),
			UpdateMS: c.figure("update_ms"), HandlerNS: c.figure("int3_handler_ns"),
			Machine: c.text("machine"), Source: c.source(),
		}
	},
}

// Refcount is what an update cost with handlers that count themselves in one
// counter, or in one a CPU, 2025.
type Refcount struct {
	Measurement         string
	Entries, Threads    int64
	UpdateUS, ProgramNS Figure
	Source              string
}

// Refcounts is the table of those.
var Refcounts = &Set[Refcount]{
	Name:    "refcount-2025",
	columns: []string{"measurement", "entries", "hardware_threads", "update_us", "program_ns", "source"},
	parse: func(c *cells) Refcount {
		return Refcount{
			Measurement: c.words("measurement"), Entries: c.count("entries"), Threads: c.count("hardware_threads"),
			UpdateUS: c.figure("update_us"), ProgramNS: c.figure("program_ns"), Source: c.source(),
		}
	},
}

// Isolated is one figure of the deferral of interrupts to isolated CPUs, 2025.
type Isolated struct {
	Measurement string
	Value       float64
	Unit        string // count or ns
	Source      string
}

// Isolation is the table of those.
var Isolation = &Set[Isolated]{
	Name:    "isolation-2025",
	columns: []string{"measurement", "value", "unit", "source"},
	parse: func(c *cells) Isolated {
		v := c.figure("value")
		if !v.Known {
			c.fail("value", "is missing")
		}
		return Isolated{Measurement: c.words("measurement"), Value: v.Value, Unit: c.oneOf("unit", "count", "ns"),
			Source: c.source()}
	},
}
