// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/tracers"
)

// global is one function for all sites, and one ops beside it: architectures without
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
type global struct {
	*Way
	ops atomic.Pointer[tracers.Ops]  // function_trace_op
	fn  atomic.Pointer[tracers.Func] // what ftrace_call calls
}

// listEnd is ftrace_list_end: what function_trace_op names while the list is walked.
var listEnd = tracers.NewOps("ftrace_list_end", tracers.FuncStub, tracers.OpsStub)

// newGlobal is an entry without ops.
func newGlobal(c Config) (*global, error) {
	w, err := newWay(c, words{}, false)
	if err != nil {
		return nil, err
	}
	g := &global{Way: w}
	w.path = g.call
	entry := func(f *tracers.Func, o *tracers.Ops) {
		if o == nil {
			o = listEnd
		}
		g.fn.Store(f)
		g.ops.Store(o)
	}
	entry(w.core.Global())
	w.core.Stores.Entry = entry
	return g, nil
}

func (g *global) call(site int, t *Task) {
	t.save(g.saves)
	if c := t.counts; c != nil {
		c.Loads++
	}
	switch o, fn := g.ops.Load(), g.fn.Load(); fn {
	case o.Func:
		g.callback(fn, o, site, t)
	case tracers.FuncStub:
	case tracers.FuncList:
		g.list.call(g.ips[site], t)
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
func (g *global) callback(fn *tracers.Func, o *tracers.Ops, site int, t *Task) {
	if fn == nil || fn.Entry == nil {
		return
	}
	if c := t.counts; c != nil {
		c.Called++
	}
	fn.Entry(g.ips[site], o, &t.Task)
}
