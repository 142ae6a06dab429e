package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// Global has one function for all sites, and one ops beside it: architectures without
// CALL_OPS.
//
//	site -> ftrace_caller -> function_trace_op
//	                      -> ftrace_call -> func, or the list function
//
// One load, of function_trace_op; the function is in an instruction that is patched.
// That is so while a single ops is attached anywhere and lies in the kernel's image;
// otherwise everybody takes the list: update_ftrace_function, kernel/trace/ftrace.c.
//
// The two words change one after the other. Between, everybody is led over the list; but
// a task that is preempted between the two reads may have one ops and call another one's
// function all the same ([Context.Mismatched]); open since March 2024.
type Global struct {
	attached
	list  list
	calls []atomic.Bool
	ops   atomic.Pointer[Ops] // function_trace_op
	fn    atomic.Pointer[Ops] // whose function ftrace_call calls; nil: the list function
}

// listEnd is ftrace_list_end: what function_trace_op names while the list is walked.
var listEnd = &Ops{stub: true}

// NewGlobal has nobody attached.
func NewGlobal(sites []records.Addr, guard Guard) *Global {
	g := &Global{attached: newAttached(sites), list: list{guard: guard}, calls: make([]atomic.Bool, len(sites))}
	g.ops.Store(listEnd)
	return g
}

// single is the ops whose function may be called without a list.
func (g *Global) single() *Ops {
	if len(g.all) != 1 || g.all[0].Dynamic || g.all[0].assisted() {
		return nil
	}
	return g.all[0]
}

// update is ftrace_modify_all_code: over the list while sites change.
func (g *Global) update(sites []int) {
	g.fn.Store(nil)
	for _, i := range sites {
		g.calls[i].Store(len(g.users[i]) > 0)
	}
	o := g.single()
	if o == nil {
		g.ops.Store(listEnd)
		return
	}
	g.ops.Store(o)
	g.fn.Store(o)
}

// Attach implements Way.
func (g *Global) Attach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sites, err := g.add(o)
	if err != nil {
		return err
	}
	g.list.push(o)
	g.update(sites)
	return nil
}

// Detach implements Way.
func (g *Global) Detach(o *Ops) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	sites, err := g.remove(o)
	if err != nil {
		return err
	}
	g.list.remove(o)
	g.update(sites)
	return nil
}

// Call implements Way.
func (g *Global) Call(site int, ctx *Context) {
	if !g.calls[site].Load() {
		return
	}
	ctx.save(ArgRegisters)
	if c := ctx.counts; c != nil {
		c.Loads++
	}
	o, fn := g.ops.Load(), g.fn.Load()
	if fn == nil {
		g.list.call(g.ips[site], ctx)
		return
	}
	if fn != o {
		ctx.Mismatched++
	}
	if c := ctx.counts; c != nil {
		c.Called++
	}
	fn.Func(g.ips[site], o, ctx)
}

// Cost implements Way.
func (g *Global) Cost(site int) Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := Counts{Loads: 1, Saved: ArgRegisters}
	switch {
	case len(g.users[site]) == 0:
		return Counts{}
	case g.single() != nil:
		return c.Add(Counts{Called: 1})
	}
	return c.Add(g.listCost(site))
}
