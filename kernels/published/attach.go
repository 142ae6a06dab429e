// SPDX-License-Identifier: Apache-2.0

package published

import (
	"fmt"

	"github.com/textpoke/textpoke/sched"
)

// The directions of what is attached.
const (
	Attach = "attach"
	Detach = "detach"
)

// AttachWait is what a detach took in a loop of them.
type AttachWait struct {
	Kernel string
	WaitMS int64
	Tasks  bool // it waits until every task has scheduled
	Source string
}

// AttachWaits is the table of those.
var AttachWaits = &Set[AttachWait]{
	Name:    "attach-waits",
	columns: []string{"kernel", "wait_ms", "tasks", sourceColumn},
	parse: func(c *cells) AttachWait {
		return AttachWait{Kernel: c.words("kernel"), WaitMS: c.count("wait_ms"),
			Tasks: c.oneOf("tasks", "yes", "no") == "yes", Source: c.source()}
	},
	key: func(w AttachWait) string { return w.Kernel },
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

// At is what a receiver takes for n functions.
func (a *AttachInterrupts) At(n int) int {
	batches := sched.Batches(n, sched.Ascending, sched.Buffer{Slots: pageOfPatches})
	return int(a.PerFunction)*n + int(a.PerBatch)*batches + int(a.Fixed)
}

// pageOfPatches is how many patches the vector of the measured kernels holds
// (TP_VEC_MAX, arch/x86/kernel/alternative.c, Linux 6.12).
const pageOfPatches = 256

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
