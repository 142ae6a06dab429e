// SPDX-License-Identifier: Apache-2.0

package published

import "fmt"

// The directions of what is attached.
const (
	Attach = "attach"
	Detach = "detach"
)

// AttachPart is one number that attaching to functions depends on, of one kernel.
type AttachPart struct {
	Kernel, Part string
	Value        int64
	Basis        string // counted on the kernel itself, read in its source, or assumed
	Source       string
}

// AttachParts is the table of those.
var AttachParts = &Set[AttachPart]{
	Name:    "attach-parts",
	columns: []string{"kernel", "part", "value", "basis", sourceColumn},
	parse: func(c *cells) AttachPart {
		return AttachPart{
			Kernel: c.words("kernel"), Part: c.words("part"), Value: c.count("value"),
			Basis: c.oneOf("basis", "counted", "source", "assumed"), Source: c.source(),
		}
	},
	key: func(p AttachPart) string { return p.Kernel + " " + p.Part },
}

// AttachInterrupts is how many interrupts the quietest receiver of a real kernel
// took: PerFunction times the functions, PerBatch times their batches of 256, and
// Fixed.
type AttachInterrupts struct {
	Kernel, Way, Direction       string
	PerFunction, PerBatch, Fixed int64
	Background                   bool // and a few wakeups of RCU and worker threads
	Source                       string
}

// AttachFormulas is the table of those.
var AttachFormulas = &Set[AttachInterrupts]{
	Name:    "attach-interrupts",
	columns: []string{"kernel", "way", "direction", "per_function", "per_batch", "fixed", "background", sourceColumn},
	parse: func(c *cells) AttachInterrupts {
		return AttachInterrupts{
			Kernel: c.words("kernel"), Way: c.words("way"), Direction: c.oneOf("direction", Attach, Detach),
			PerFunction: c.count("per_function"), PerBatch: c.count("per_batch"), Fixed: c.count("fixed"),
			Background: c.oneOf("background", "yes", "no") == "yes", Source: c.source(),
		}
	},
	key: func(a AttachInterrupts) string { return a.Kernel + " " + a.Way + " " + a.Direction },
}

// AttachReading is a single reading of that.
type AttachReading struct {
	Kernel, Way, Direction string
	Functions, Interrupts  int64
	Source                 string
}

// AttachReadings is the table of those.
var AttachReadings = &Set[AttachReading]{
	Name:    "attach-readings",
	columns: []string{"kernel", "way", "direction", "functions", "interrupts", sourceColumn},
	parse: func(c *cells) AttachReading {
		return AttachReading{
			Kernel: c.words("kernel"), Way: c.words("way"), Direction: c.oneOf("direction", Attach, Detach),
			Functions: c.positive("functions"), Interrupts: c.count("interrupts"), Source: c.source(),
		}
	},
	key: func(a AttachReading) string {
		return fmt.Sprintf("%s %s %s %d", a.Kernel, a.Way, a.Direction, a.Functions)
	},
}
