// SPDX-License-Identifier: Apache-2.0

package tracers

import "github.com/textpoke/textpoke/records"

// Context is what a CPU is doing when a function is called, at the bits of
// include/linux/trace_recursion.h (TRACE_CTX_*, Linux 5.10 to 7.1).
type Context uint8

// The contexts.
const (
	NMI Context = iota
	IRQ
	SoftIRQ
	Normal
	transition
	contextBits // of one guard
)

// Guard is where the bits of a guard against recursion begin in
// current->trace_recursion. The guards do not see each other.
type Guard uint8

// The guards.
const (
	FtraceGuard Guard = 0                  // of a callback itself (TRACE_FTRACE_START)
	ListGuard   Guard = Guard(contextBits) // of the list and assist functions (TRACE_LIST_START)
)

// Recursion is how kernels guard against tracers that call what they trace.
type Recursion uint8

// The ways to guard. The zero value is that of present kernels.
const (
	// TransitionBit has a bit for each context, and one more that lets a single call
	// pass whose context's bit is set: an interrupt may be traced before the CPU knows
	// that it is in one (726b3d3f141f, Linux 5.10).
	TransitionBit Recursion = iota
	// ContextBits has only the contexts' bits: such calls are missed.
	ContextBits
	// Unguarded has none: a tracer that calls what it traces runs until the stack ends.
	Unguarded
)

// maxDepth is where a kernel's stack would have overflown: 16 KiB, and at least 256
// bytes for ftrace_caller, the list function and the callback.
const maxDepth = 64

// Task is a task that calls traced functions, with the bits that the kernel keeps in
// task_struct. The zero value is in normal context. One goroutine uses it.
type Task struct {
	Recursion Recursion

	Hits       uint64 // for callbacks to count in
	Missed     uint64 // calls that a guard refused, or for whose return there was no room
	Overflowed uint64 // calls at which the stack would have overflown for want of a guard

	level uint8  // interrupt_context_level, include/linux/preempt.h
	bits  uint16 // trace_recursion
	depth int
}

// Context is what the task's CPU believes to be in (trace_get_context_bit).
func (t *Task) Context() Context { return Normal - Context(t.level) }

// Interrupt runs f in a context, and returns from it.
func (t *Task) Interrupt(c Context, f func()) {
	was := t.level
	t.level = uint8(Normal - min(c, Normal))
	f()
	t.level = was
}

// Enter takes the guard's bit for the context (trace_test_and_set_recursion). A call
// that may not go on is counted, and has no bit to give back.
func (t *Task) Enter(g Guard) (bit uint16, ok bool) {
	if t.Recursion == Unguarded {
		if t.depth == maxDepth {
			t.Overflowed++
			return 0, false
		}
		t.depth++
		return 0, true
	}
	bit = 1 << (Context(g) + t.Context())
	if t.bits&bit != 0 {
		bit = 1 << (Context(g) + transition)
		if t.Recursion == ContextBits || t.bits&bit != 0 {
			t.Missed++
			return 0, false
		}
	}
	t.bits |= bit
	return bit, true
}

// Leave gives the bit back (trace_clear_recursion).
func (t *Task) Leave(bit uint16) {
	if t.Recursion == Unguarded {
		t.depth--
	}
	t.bits &^= bit
}

// Func is a function that an ops calls. Funcs are compared by their address, as
// the kernel compares its own.
type Func struct {
	Name string
	// Entry is called when a traced function begins; nil does nothing.
	Entry func(ip records.Addr, o *Ops, t *Task)
	// Exit is called when the function returns, and Modify before it begins: with
	// another answer than 0 it does not. Only what hooks returns knows them.
	Exit   func(ip records.Addr, o *Ops, t *Task)
	Modify func(ip records.Addr, o *Ops, t *Task) uint64
}

// The kernel's own functions.
var (
	FuncStub       = &Func{Name: "ftrace_stub"}            // returns
	FuncList       = &Func{Name: "ftrace_ops_list_func"}   // goes through all ops
	FuncAssist     = &Func{Name: "ftrace_ops_assist_func"} // guards one ops against recursion
	FuncCallDirect = &Func{Name: "call_direct_funcs"}      // hands the direct trampoline to the entry
)

// CountHits is a tracer that counts its calls in the task, as
// samples/ftrace/ftrace-ops.c does with check_count.
var CountHits = &Func{Name: "count_hits", Entry: Hit}

// Hit counts a call.
func Hit(_ records.Addr, _ *Ops, t *Task) { t.Hits++ }
