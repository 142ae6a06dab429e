// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
)

// ops is an ftrace_ops.
type ops struct {
	name    string
	dynamic bool // not in the kernel's own data: it gets a trampoline each time
	stub    bool // its function is ftrace_stub
	direct  bool // functions call its user's code directly: it has no trampoline of its own
}

// What the common entries may call besides an ops' own function.
const (
	noFunction   = "ftrace_stub"
	listFunction = "ftrace_ops_list_func"
)

// isExit tells whether an event of a system call is about its end.
func isExit(event string) bool {
	return strings.HasPrefix(event, "exit_") || strings.HasPrefix(event, "sys_exit_")
}

// choose is update_ftrace_function (kernel/trace/ftrace.c): what traced functions reach.
func (r *Replay) choose() string {
	switch {
	case len(r.ops) == 0:
		return noFunction
	case len(r.ops) > 1 || r.ops[0].dynamic:
		return listFunction
	case r.ops[0].stub:
		return noFunction
	}
	return r.ops[0].name
}

// attach is ftrace_startup: an ops gets its trampoline, joins the list, and so many
// records change, in so many batches.
func (r *Replay) attach(o *ops, n, batches int) {
	if !o.direct && !o.stub && r.mech(image.TrampolineAims) > 0 {
		r.in("tracer-trampoline", func() { r.trampoline(o) })
	}
	r.ops = append(r.ops, o)
	r.update(n, batches)
}

// trampoline is arch_ftrace_update_trampoline: it is made, or given its function again.
func (r *Replay) trampoline(o *ops) {
	if o.dynamic || r.FirstUse && !r.made[o.name] {
		r.made[o.name] = true
		r.flush(r.mech(image.TrampFlushes), "the trampoline of "+o.name+" is made: so many changes of protection, or more")
		return
	}
	r.made[o.name] = true
	r.sent(
		cpus.Trampoline,
		r.k.callRow,
		1,
		r.mech(image.TrampolineAims),
		r.k.Facts.code(),
		"the trampoline of "+o.name+" gets its function",
	)
}

// flush is a change of protection of pages. How many flushes it takes is not in an image.
func (r *Replay) flush(n int, source string) {
	r.sent(cpus.PageAttributes, r.k.callRow, n, r.mech(image.PageFlushes), Assumed, source)
}

// detach is ftrace_shutdown. An ops that may be freed is waited for.
func (r *Replay) detach(name string, n, batches int) {
	i := slices.IndexFunc(r.ops, func(o *ops) bool { return o.name == name })
	if i < 0 {
		return
	}
	o := r.ops[i]
	r.ops = slices.Delete(r.ops, i, i+1)
	r.update(n, batches)
	if !o.dynamic {
		return
	}
	r.in("rcu", func() {
		r.sent(cpus.CoreSync, r.k.wakeRow(), 1, r.mech(image.DetachWakes), Assumed,
			"each CPU is given work, and woken; a busy one counts that as rescheduling")
	})
	if !o.direct && r.mech(image.TrampolineAims) > 0 {
		r.in("tracer-trampoline", func() { r.flush(r.mech(image.TrampFrees), "the trampoline of "+o.name+" is freed") })
	}
}

// update is ftrace_run_update_code: the common entries call the list function while
// records change, if the traced function does, and then that one.
func (r *Replay) update(n, batches int) {
	changed := r.choose() != r.chosen
	r.chosen = r.choose()
	if r.mech(image.UpdateStops) > 0 {
		r.records(n, batches)
		r.entry = r.chosen
		return
	}
	if changed {
		r.entries(listFunction)
	}
	r.records(n, batches)
	if changed && r.chosen != listFunction {
		r.in("core-sync", func() {
			r.sent(
				cpus.CoreSync,
				r.k.callRow,
				r.mech(image.CoreSyncs),
				1,
				r.k.Facts.code(),
				"ftrace_sync_ipi orders what the next function is called with",
			)
		})
		r.entries(r.chosen)
	}
}

// entries lets the calls in the common entries go to a function (update_ftrace_func).
func (r *Replay) entries(to string) {
	if r.entry == to && r.mech(image.EntryKept) > 0 {
		return
	}
	r.entry = to
	r.in("entry-calls", func() {
		r.sent(cpus.EntryCall, r.k.callRow, r.mech(image.EntryCalls), r.mech(image.EntryRounds), r.k.Facts.code(),
			"the calls in the common entries go to "+to)
	})
}

// records is the update of the records themselves. It is noted even if it sends nothing.
func (r *Replay) records(n, batches int) {
	if n == 0 {
		return
	}
	for _, name := range []string{image.UpdateRounds, image.UpdateStops, image.UpdateFences, image.RecordFences, image.BatchRounds} {
		r.mech(name)
	}
	rec := r.k.Records
	l := Line{
		Records: n,
		Batches: batches,
		Entry: Entry{Part: "records", Cause: rec.Cause, Row: r.k.RowOf(rec.Cause), Pokes: n,
			Basis: r.k.Facts.code(), Source: rec.Source},
	}
	l.Sent = batches*rec.PerBatch + n*rec.PerRecord + rec.PerUpdate
	if rec.PerBatch > 0 {
		l.Source = fmt.Sprintf("%d batches; %s", batches, l.Source)
	}
	r.rows = append(r.rows, l)
}

// The kernel's own ops.
var (
	globalOps  = &ops{name: "function_trace_call"}
	graphOps   = &ops{name: "ftrace_graph_func"}
	graphStub  = &ops{name: "function_graph", stub: true}
	kprobeOps  = &ops{name: "kprobe_ftrace_handler"}
	directOps  = &ops{name: "call_direct_funcs", direct: true}
	multiOps   = &ops{name: "fprobe_ftrace_entry"}
	aFprobe    = &ops{name: "fprobe_handler", dynamic: true}
	anInstance = &ops{name: "function_trace_call of an instance", dynamic: true}
	temporary  = &ops{name: "tmp_ops"}
)

// function is the function tracer (function_trace_init and function_trace_reset,
// kernel/trace/trace_functions.c).
func (r *Replay) function(o *ops, on bool, n, batches int) {
	if on {
		r.record(true)
		r.attach(o, n, batches)
		return
	}
	r.detach(o.name, n, batches)
	r.record(false)
}

// graph is the function_graph tracer (graph_trace_init and graph_trace_reset,
// kernel/trace/trace_functions_graph.c).
func (r *Replay) graph(on bool, n, batches int) {
	if on {
		r.graphUser(true, n, batches)
		r.record(true)
		return
	}
	r.record(false)
	r.graphUser(false, n, batches)
}

// graphUser is register_ftrace_graph and its counterpart (kernel/trace/fgraph.c).
func (r *Replay) graphUser(on bool, n, batches int) {
	o := graphOps
	if r.mech(image.GraphOwnFunc) == 0 {
		o = graphStub
	}
	const probe = "own-probe"
	if on {
		r.fastPath()
		r.in(probe, func() { r.hook("sched_switch", probe) })
		r.attach(o, n, batches)
		r.graphJump()
		return
	}
	r.detach(o.name, n, batches)
	r.graphJump()
	r.fastPath()
	r.in(probe, func() { r.unhook("sched_switch", probe) })
}

// fastPath is ftrace_graph_enable_direct and its counterpart.
func (r *Replay) fastPath() {
	if r.mech(image.GraphFastPath) > 0 {
		r.in("fast-path", func() {
			r.call("fgraph_func")
			r.call("fgraph_retfunc")
		})
	}
}

// graphJump is ftrace_enable_ftrace_graph_caller and its counterpart.
func (r *Replay) graphJump() {
	r.in("graph-jump", func() {
		r.sent(cpus.EntryCall, r.k.callRow, 1, r.mech(image.GraphJumps), r.k.Facts.code(), "the jump at ftrace_graph_call")
	})
}
