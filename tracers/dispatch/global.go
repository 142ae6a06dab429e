// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/tracers"
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
// function all the same ([Task.Mismatched]); open since March 2024.
type Global struct {
	*base
	calls []atomic.Bool
	ops   atomic.Pointer[tracers.Ops]  // function_trace_op
	fn    atomic.Pointer[tracers.Func] // what ftrace_call calls
}

// listEnd is ftrace_list_end: what function_trace_op names while the list is walked.
var listEnd = tracers.NewOps("ftrace_list_end", tracers.FuncStub, tracers.OpsStub)

// NewGlobal is an entry without ops.
func NewGlobal(c Config) (*Global, error) {
	b, err := newBase(c, words{}, false)
	if err != nil {
		return nil, err
	}
	g := &Global{base: b, calls: make([]atomic.Bool, b.sites)}
	b.text = func(site int, to tracers.Installed) { g.calls[site].Store(to.Decided != 0) }
	entry := func(f *tracers.Func, o *tracers.Ops) {
		if o == nil {
			o = listEnd
		}
		g.fn.Store(f)
		g.ops.Store(o)
	}
	entry(b.core.Global())
	b.core.Stores.Entry = entry
	return g, nil
}

// Call implements Way.
func (g *Global) Call(site int, t *Task) {
	if !g.calls[site].Load() {
		return
	}
	t.save(g.saves)
	if c := t.counts; c != nil {
		c.Loads++
	}
	ip := g.ips[site]
	switch o, fn := g.ops.Load(), g.fn.Load(); fn {
	case o.Func:
		g.callback(fn, o, site, t)
	case tracers.FuncStub:
	case tracers.FuncList:
		g.list.call(ip, t)
	case tracers.FuncAssist:
		if bit, ok := t.Enter(tracers.ListGuard); ok {
			g.callback(o.Func, o, site, t)
			t.Leave(bit)
		}
	default:
		t.Mismatched++
		g.callback(fn, o, site, t)
	}
}

// callback calls a tracer's function.
func (g *Global) callback(fn *tracers.Func, o *tracers.Ops, site int, t *Task) {
	if fn == nil || fn.Entry == nil {
		return
	}
	if c := t.counts; c != nil {
		c.Called++
	}
	fn.Entry(g.ips[site], o, &t.Task)
}

// Cost implements Way.
func (g *Global) Cost(site int) Counts {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := Counts{Loads: 1, Saved: int64(g.saves)}
	fn, o := g.core.Global()
	switch {
	case g.core.Text(site).Decided == 0:
		return Counts{}
	case fn == tracers.FuncList:
		return c.Add(g.listCost(site))
	case g.entries[o].run != nil:
		c.Called = 1
	}
	return c
}
