// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/records"
)

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

// Task is a task that calls traced functions, with the bits that the kernel keeps in
// task_struct. The zero value is in normal context. One goroutine uses it.
type Task struct {
	Hits   uint64 // for callbacks to count in
	Missed uint64 // calls that a guard refused, or for whose return there was no room

	level uint8  // interrupt_context_level, include/linux/preempt.h
	bits  uint16 // trace_recursion
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

// Enter takes the guard's bit for the context (trace_test_and_set_recursion), or one more that lets a single call pass
// whose context's bit is set: an interrupt may be traced before the CPU knows that it is in one (726b3d3f141f, Linux
// 5.10). A call that may not go on is counted, and has no bit to give back.
func (t *Task) Enter(g Guard) (bit uint16, ok bool) {
	bit = 1 << (Context(g) + t.Context())
	if t.bits&bit != 0 {
		bit = 1 << (Context(g) + transition)
		if t.bits&bit != 0 {
			t.Missed++
			return 0, false
		}
	}
	t.bits |= bit
	return bit, true
}

// Leave gives the bit back (trace_clear_recursion).
func (t *Task) Leave(bit uint16) { t.bits &^= bit }

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

// Called is one callee: an ops' function, or a direct trampoline.
type Called struct {
	Ops    *Ops         // whose function was called, with this ops
	Direct records.Addr // the direct trampoline, where it is one
}

// Frame is a CPU that has executed a site and goes on from there. Values that it has loaded stay as
// they are, and no grace period ends before it is finished.
type Frame struct {
	c     *Core
	rec   int
	epoch int
	f     *Func
	op    *Ops
	tramp *tramp
	calls records.Addr // a direct trampoline
	regs  bool
}

// ErrFreed says that a call met something that was freed.
var ErrFreed = errors.New("which was freed")

// Enter executes a site and loads the ops that it leads to: the literal's, the one
// behind a trampoline, or the global pair.
func (c *Core) Enter(rec int) *Frame {
	f := &Frame{c: c, rec: rec, epoch: c.epoch, regs: !c.traits.RegsEntry}
	c.frames = append(c.frames, f)
	at := c.text[rec]
	switch to := at.Calls(c.Places.Entry); {
	case to == 0:
	case to == c.Places.Entry || to == c.Places.RegsEntry:
		f.regs = f.regs || to == c.Places.RegsEntry
		if f.op = at.Literal; c.traits.CallOps {
			f.f, f.calls = f.op.Func, f.op.DirectCall
		} else {
			f.f, f.op = c.global.patched, c.global.passed
		}
	case c.tramps[to] != nil:
		f.tramp = c.tramps[to]
		f.f, f.op = f.tramp.aims, f.tramp.ops
		f.regs = f.regs || f.op.has(OpsSaveRegs)
	default:
		f.calls = to
	}
	return f
}

// Finish goes on to the end, calls whom it meets, and says who that was, in order. An
// ErrFreed says that what it had loaded was freed meanwhile.
func (f *Frame) Finish(t *Task) ([]Called, error) {
	c := f.c
	i := slices.Index(c.frames, f)
	c.frames = slices.Delete(c.frames, i, i+1)
	defer c.release()
	if f.tramp != nil && f.tramp.gone {
		return nil, fmt.Errorf("call through the trampoline of ops %s, %w", f.op.Name, ErrFreed)
	}
	if f.op != nil && f.op.alive == freed {
		return nil, fmt.Errorf("call through ops %s, %w", f.op.Name, ErrFreed)
	}
	w := walk{Frame: f, t: t, late: f.calls}
	if w.late == 0 {
		w.call(f.f, f.op)
	}
	if w.late != 0 {
		w.called = append(w.called, Called{Direct: w.late})
		if c.Jump != nil {
			c.Jump(w.late, c.Records[f.rec], t)
		}
	}
	return w.called, nil
}

// walk is a call on its way to its tracers.
type walk struct {
	*Frame
	t      *Task
	called []Called
	late   records.Addr // where the entry jumps to in the end
}

// call calls a function for an ops.
func (w *walk) call(f *Func, o *Ops) {
	switch f {
	case nil, FuncStub:
	case FuncCallDirect: // call_direct_funcs looks the function up where one ops has all trampolines
		w.late = o.DirectCall
		if w.c.traits.SingleDirectOps {
			w.late = w.c.direct[w.rec]
		}
	case FuncList, FuncAssist:
		bit, ok := w.t.Enter(ListGuard)
		if !ok {
			return
		}
		if f == FuncAssist {
			w.call(o.Func, o)
		} else {
			w.list()
		}
		w.t.Leave(bit)
	default:
		w.called = append(w.called, Called{Ops: o})
		if f.Entry != nil {
			f.Entry(w.c.Records[w.rec], o, w.t)
		}
	}
}

// list goes over all ops, newest first, and their hashes.
func (w *walk) list() {
	for o := range w.c.List() {
		if !o.has(OpsStub) && o.Test(w.rec, w.regs) {
			w.call(o.Func, o)
		}
	}
}

// Call executes a function's site and says who was called, in order.
func (c *Core) Call(rec int) ([]Called, error) {
	return c.Enter(rec).Finish(new(Task))
}

// departure is a detached ops that a call may still be on its way to.
type departure struct {
	ops   *Ops
	epoch int
}

// depart starts the wait that ends a detached ops, if it may be freed: both
// flavours of RCU tasks, then its trampoline goes (ftrace_shutdown).
func (x *change) depart(o *Ops) {
	c := x.c
	if !o.has(OpsDynamic) {
		o.alive = fresh
		return
	}
	x.step(StepRude, o)
	x.step(StepTasks, o)
	if o.has(OpsAllocTramp) {
		x.step(StepFree, o)
	}
	d := &departure{o, c.epoch}
	c.epoch++
	c.leaving = append(c.leaving, d)
	x.later(func() {
		c.leaving = slices.DeleteFunc(c.leaving, func(other *departure) bool { return other == d })
	})
}

// release ends the grace periods that no call holds up.
func (c *Core) release() {
	if c.change != nil {
		return
	}
	kept := c.leaving[:0]
	for _, d := range c.leaving {
		if slices.ContainsFunc(c.frames, func(f *Frame) bool { return f.epoch <= d.epoch }) { // a call began before it left
			kept = append(kept, d)
			continue
		}
		d.ops.alive = released
		if d.ops.has(OpsAllocTramp) {
			c.tramps[d.ops.Trampoline].gone = true
			d.ops.Trampoline = 0
			d.ops.Flags &^= OpsAllocTramp
		}
	}
	c.leaving = kept
}
