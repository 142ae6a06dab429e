// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/tracers"
)

// AllRegisters and ArgRegisters are how many are saved: pt_regs of arm64 has x0 to
// x30, sp, pc and pstate; its ftrace_regs, since Linux 6.2, x0 to x8, fp, lr, sp and
// pc. arch/arm64/kernel/entry-ftrace.S.
const (
	AllRegisters = 34
	ArgRegisters = 13
)

// Task is a task that calls, with what is on the stack of ftrace_caller. The zero
// value has not called anything yet. One goroutine uses it.
type Task struct {
	tracers.Task
	// Regs are the registers as the traced function finds them.
	Regs [AllRegisters]uint64
	// Body is the traced function, for ways that hook its return; nil does nothing.
	Body func()
	// Mismatched are calls of one ops' function with another ops.
	Mismatched uint64

	counts    *Counts
	saved     [AllRegisters]uint64
	late      *trampoline // ftrace_regs.direct_tramp: where to go on the way out
	shadow    [shadowFrames]frame
	frames    int
	hooks     *node // returns that are hooked, the latest first
	probing   bool  // a kprobe is being handled: current_kprobe
	quiescent atomic.Uint64
}

// Count makes the task count what its calls take, from now on; nil ends that.
func (t *Task) Count(to *Counts) { t.counts = to }

// count adds what a part of a call takes.
func (t *Task) count(n Counts) {
	if t.counts != nil {
		*t.counts = t.counts.Add(n)
	}
}

// save saves the first n registers.
func (t *Task) save(n int) {
	copy(t.saved[:n], t.Regs[:n])
	if c := t.counts; c != nil {
		c.Saved += int64(n)
	}
}

// body runs the traced function.
func (t *Task) body() {
	if t.Body != nil {
		t.Body()
	}
}

// Quiescent says that the task is on no way to a tracer now: a voluntary switch, to
// RCU-tasks.
func (t *Task) Quiescent() { t.quiescent.Add(1) }

// Synchronize waits until each task has said so since: then none of them is on a way
// that it had begun before. It is synchronize_rcu_tasks, which unregister_ftrace_function
// waits for where an ops may be freed; yield lets others run meanwhile. Tasks that have
// ended are not waited for: leave them out.
func Synchronize(tasks []*Task, yield func()) {
	for _, t := range tasks {
		for was := t.quiescent.Load(); t.quiescent.Load() == was; {
			yield()
		}
	}
}
