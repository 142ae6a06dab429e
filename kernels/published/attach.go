// SPDX-License-Identifier: Apache-2.0

package published

import "github.com/textpoke/textpoke/sched"

// The directions of what is attached.
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
