// SPDX-License-Identifier: Apache-2.0

package cpus

import "github.com/textpoke/textpoke/cpus/isa"

// Task is what a CPU was in the middle of when its task was preempted: a small
// value, like CPU.
type Task struct {
	Phase   Phase // Boundary: there is none
	Off     uint8
	Site    int32
	Promise Promise
	Scratch uint64
	Text    isa.Text
	Ops     uint64

	Owes    bool   // an answer to a grace period
	Quiesce Ticket // which
}

// There tells whether there is a task at all.
func (t *Task) There() bool { return t.Phase != Boundary }

// CanPark tells whether the CPU is in the middle of a call, where kernels built
// with CONFIG_PREEMPT may give it to another task.
func (c *CPU) CanPark() bool {
	return c.AtBorder() && c.Phase > Asleep && c.Masked == 0
}

// Park takes the task off the CPU, between two of its instructions: a timer
// interrupt came. The CPU goes on with a task that stands between two calls.
func (c *CPU) Park(code *Code, sh Shared) Task {
	c.Tick(code, sh)
	t := Task{
		Phase: c.Phase, Site: c.Site, Promise: c.Promise, Scratch: c.Scratch, Text: c.Text, Off: c.Off, Ops: c.Ops,
		Owes: c.quiet, Quiesce: c.Quiesce,
	}
	c.Phase, c.polled, c.quiet, c.Linger = Boundary, false, false, 0
	return t
}

// CanUnpark tells whether the CPU stands where it can go on with another task.
func (c *CPU) CanUnpark() bool {
	return c.Phase == Boundary && c.Masked == 0 && !c.stop && !c.quiet
}

// Unpark goes on with a task where it was preempted, there or on another CPU.
// Nothing is fetched afresh for that.
func (c *CPU) Unpark(t Task) {
	c.Phase, c.Site, c.Off, c.Text, c.Scratch = t.Phase, t.Site, t.Off, t.Text, t.Scratch
	c.Promise, c.Ops = t.Promise, t.Ops
	c.polled, c.quiet, c.Quiesce = false, t.Owes, t.Quiesce
}
