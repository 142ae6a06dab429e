package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// Func is a callback: what a tracer does with a call of the function at ip.
type Func func(ip records.Addr, o *Ops, ctx *Context)

// Ops is one tracer: struct ftrace_ops, include/linux/ftrace.h. It is in one way at
// most, and nothing of it changes while it is there.
type Ops struct {
	Func Func // on entry
	// Exit is called when the function returns, and Modify before it begins: another
	// answer than 0 and it does not. Only ways that hook returns know them.
	Exit   Func
	Modify func(ip records.Addr, ctx *Context) uint64
	// Filter are the functions that it traces, nil for all.
	Filter *Hash
	// Dynamic says that the ops is not in the kernel's image, such as a module's:
	// a global function may not lead to it. FTRACE_OPS_FL_DYNAMIC.
	Dynamic bool
	// Assist says that Func relies on the guard against recursion that the list function has.
	// FTRACE_OPS_FL_RECURSION.
	Assist bool
	// Direct says that Func stands for a direct trampoline, which a site may call itself:
	// FTRACE_OPS_FL_DIRECT. At most one at a site.
	Direct bool

	stub   bool                       // Func is no tracer's: nop_ops, list_ops, call_direct_funcs
	direct atomic.Pointer[Trampoline] // ops->direct_call
	next   atomic.Pointer[Ops]
}

// Trampoline is code that a site can call itself: it takes its arguments in registers
// and has everything else as immediates.
type Trampoline struct {
	Run Func
	of  *Ops
}

// jump is a branch to the trampoline.
func (t *Trampoline) jump(ip records.Addr, ctx *Context) {
	t.Run(ip, t.of, ctx)
	if c := ctx.counts; c != nil {
		c.Called++
	}
}

// assisted tells whether the ops is called over the list function even when it is
// alone. A trampoline looks after itself.
func (o *Ops) assisted() bool { return o.Assist && !o.Direct }

// matches tells whether the ops traces a function.
func (o *Ops) matches(ip records.Addr) bool { return o.Filter == nil || o.Filter.Contains(ip) }
