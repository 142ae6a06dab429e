// SPDX-License-Identifier: Apache-2.0

package dispatch

import "github.com/textpoke/textpoke/tracers"

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
	// Body is the traced function; nil does nothing.
	Body func()
	// Mismatched are calls of one ops' function with another ops.
	Mismatched uint64

	counts  *Counts
	saved   [AllRegisters]uint64
	late    *trampoline // ftrace_regs.direct_tramp: where to go on the way out
	shadow  [shadowFrames]frame
	frames  int
	hooks   *node // returns that are hooked, the latest first
	probing bool  // a kprobe is being handled: current_kprobe
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

// Counts is what calls take; all are exact.
type Counts struct {
	Loads   int64 // objects read because their address was
	Hashes  int64 // lookups of an address in a hash
	Walked  int64 // entries of lists that were walked
	Called  int64 // callbacks called
	Saved   int64 // registers saved
	Atomics int64 // read-modify-writes of words that other CPUs change too
	Traps   int64 // exceptions taken
}

// Add adds up two counts.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Loads + d.Loads, c.Hashes + d.Hashes, c.Walked + d.Walked, c.Called + d.Called,
		c.Saved + d.Saved, c.Atomics + d.Atomics, c.Traps + d.Traps,
	}
}

// Times is so many times the same.
func (c Counts) Times(n int64) Counts {
	return Counts{c.Loads * n, c.Hashes * n, c.Walked * n, c.Called * n, c.Saved * n, c.Atomics * n, c.Traps * n}
}
