package dispatch

import "sync/atomic"

// Level is in what kind of context a CPU runs: each has a bit of its own in the guard
// against recursion. trace_get_context_bit, include/linux/trace_recursion.h.
type Level uint8

// The levels.
const (
	Task Level = iota
	SoftIRQ
	IRQ
	NMI
)

// Context is the task that calls: what the kernel keeps in task_struct and on the
// stack of ftrace_caller. It is used by one goroutine.
type Context struct {
	// Regs are the registers as the traced function finds them.
	Regs [AllRegisters]uint64
	// Level is the context that the CPU believes to be in.
	Level Level
	// Body is the traced function, for ways that hook its return; nil does nothing.
	Body func()
	// Hits is for callbacks to count in.
	Hits uint64
	// Missed are calls that reached no callback: refused by the guard against
	// recursion, or no frame was left for their return.
	Missed uint64
	// Overflowed are calls at which the stack would have overflown for want of a guard.
	Overflowed uint64
	// Mismatched are calls of one ops' function with another ops.
	Mismatched uint64

	counts    *Counts
	saved     [AllRegisters]uint64
	recursion uint16
	depth     int
	late      *Trampoline // ftrace_regs.direct_tramp: where to go on the way out
	shadow    [shadowFrames]frame
	frames    int
	hooks     *node // returns that are hooked, the latest first
	probing   bool  // a kprobe is being handled: current_kprobe
	quiescent atomic.Uint64
}

// AllRegisters and ArgRegisters are how many are saved: pt_regs of arm64 has x0 to
// x30, sp, pc and pstate; its ftrace_regs, since Linux 6.2, x0 to x8, fp, lr, sp and
// pc. arch/arm64/kernel/entry-ftrace.S.
const (
	AllRegisters = 34
	ArgRegisters = 13
)

// NewContext is a task that has not called anything yet.
func NewContext() *Context { return &Context{} }

// Count makes the context count what its calls take, from now on.
func (ctx *Context) Count(to *Counts) { ctx.counts = to }

// save saves the first n registers.
func (ctx *Context) save(n int) {
	copy(ctx.saved[:n], ctx.Regs[:n])
	if c := ctx.counts; c != nil {
		c.Saved += int64(n)
	}
}

// body runs the traced function.
func (ctx *Context) body() {
	if ctx.Body != nil {
		ctx.Body()
	}
}

// Quiescent says that the task is on no way to a tracer now: a voluntary switch, to
// RCU-tasks.
func (ctx *Context) Quiescent() { ctx.quiescent.Add(1) }

// Synchronize waits until each task has said so since: then none of them is on a way
// that it had begun before. It is synchronize_rcu_tasks, which unregister_ftrace_function
// waits for where an ops may be freed; yield lets others run meanwhile. Tasks that have
// ended are not waited for: leave them out.
func Synchronize(tasks []*Context, yield func()) {
	for _, t := range tasks {
		for was := t.quiescent.Load(); t.quiescent.Load() == was; {
			yield()
		}
	}
}
