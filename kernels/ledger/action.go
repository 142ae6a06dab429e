// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/tracers"
)

// Action is something that can be switched on and off.
type Action struct {
	Name     string
	Argument string // what stands behind a colon; "" for nothing
	Must     bool   // the argument must stand there
	Doc      string

	do func(a *asked, on bool) error
}

// actions are those that the rules know.
var actions = []Action{
	{"function-tracer", "FILTER", false, "the function tracer, on all functions or on those of a filter",
		func(a *asked, on bool) error { return a.traceWith(globalOps, 0, on) }},
	{"function-tracer-first", "FILTER", false, "likewise, the first time since boot: its trampoline is made", doFirst},
	{"function-graph", "FILTER", false, "the function_graph tracer", doGraph},
	{"instance", "FILTER", false, "the function tracer of another instance, while nothing else is traced",
		func(a *asked, on bool) error { return a.traceWith(instance, tracers.OpsDynamic, on) }},
	{"filter-change", "FROM>TO", true, "the function tracer's filter is changed while it is on, and changed back", doFilter},
	{"setfilter", "FILTER", true, "the function tracer's filter is written while it traces all functions, and emptied again",
		func(a *asked, on bool) error {
			_, err := a.changeFilter("", a.arg, on)
			return err
		}},
	{"set_ftrace_pid", "", false, "the function tracer's filter of processes is written, while tracers are on", doPids},
	{"tracepoint", "[GROUP/]NAME", true, "one trace event", doEvent},
	{"perf-event", "[GROUP/]NAME", true, "one trace event for perf or BPF, which has no command lines recorded", doPerfEvent},
	{"raw-tracepoint", "NAME", true, "a probe on a tracepoint", doTracepoint},
	{"record-cmd=0", "[GROUP/]NAME", false, "the option record-cmd is cleared while a trace event is on, sched/sched_switch " +
		"without a name, and set again", doOption},
	{"event-group", "NAME", true, "all trace events of a group; \"all\" is all of all", doGroup},
	{"static-key", "NAME", true, "a static key, by the symbol of it: sched_schedstats", func(a *asked, on bool) error {
		a.in("static-key", func() { a.use(a.arg, on) })
		return nil
	}},
	{"kprobe", "SYMBOL[+OFFSET]", false, "an event of a kprobe, at vfs_read without a symbol", doProbe},
	{"kretprobe", "SYMBOL", false, "an event of a return probe, at vfs_read without a symbol", doProbe},
	{"perf-kprobe", "SYMBOL[+OFFSET]", false, "a probe or return probe for perf or BPF, without command lines", doPerfProbe},
	{"fentry", "SYMBOL", false, "a BPF program on a function's entry, vfs_read without a symbol",
		func(a *asked, on bool) error { return a.program(on, tracers.FEntry) }},
	{"fexit", "SYMBOL", false, "a BPF program on a function's entry and end",
		func(a *asked, on bool) error { return a.program(on, tracers.FExit) }},
	{"kprobe-multi", "NUMBER|FILTER", false, "one BPF link to the first so many functions, or to those of a filter; 1 without " +
		"either", doMulti},
	{"tracing-multi", "NUMBER", false, "one BPF link of fentry programs to the first so many functions",
		func(a *asked, on bool) error { return a.first(on, (*Replay).tracingMulti) }},
	{"function-call", "NUMBER", true, "every CPU is asked so many times to call a function, on behalf of an event of its own",
		doCalls},
	{"module-load", "FILE", true, "a kernel module is loaded, and unloaded again",
		func(a *asked, on bool) error { return a.module(on) }},
	{"module-unload", "FILE", true, "a kernel module that is there is unloaded, and loaded again",
		func(a *asked, on bool) error { return a.module(!on) }},
	{"uprobe", "PROGRAM[@PROCESSES]", true, "probes on all USDT sites of a program, or on those of a sample such as 3xnop5 " +
		"(nop1, nop5, nop10, other), hit in so many processes, one unless given", doUprobes},
}

// Actions are those that can be predicted for a kernel with an image.
func Actions() []Action { return slices.Clone(actions) }

// ActionNames are the names of the actions.
func ActionNames() []string { return spelling.Each(actions, func(a Action) string { return a.Name }) }

// asked is an action with its argument, on a kernel in some state.
type asked struct {
	*Replay
	arg string
}

// ParseAction finds one of some actions, and parts it from its argument.
func ParseAction(among []Action, spec string) (a Action, arg string, err error) {
	name, arg, given := strings.Cut(spec, ":")
	a, err = spelling.Find("action", name, among, func(a Action) string { return a.Name })
	switch {
	case err != nil:
	case a.Must && arg == "":
		err = fmt.Errorf("action %q: want %s:%s", spec, a.Name, a.Argument)
	case given && arg == "":
		err = fmt.Errorf("action %q: nothing stands behind the colon", spec)
	case given && a.Argument == "":
		err = fmt.Errorf("action %q: %s stands alone", spec, a.Name)
	}
	return a, arg, err
}

// Switch does an action, or takes it back, and tells what that sends.
func (r *Replay) Switch(spec string, on bool) ([]Line, error) {
	a, arg, err := ParseAction(actions, spec)
	if err != nil {
		return nil, err
	}
	if err := a.do(&asked{r, arg}, on); err != nil {
		return nil, fmt.Errorf("kernel %s, action %s: %w", r.k.Name(), spec, err)
	}
	lines, err := r.Take()
	if err != nil {
		return nil, fmt.Errorf("action %s: %w", spec, err)
	}
	return lines, nil
}

func doFirst(a *asked, on bool) error {
	a.firstUse = on
	err := a.traceWith(globalOps, 0, on)
	a.firstUse = false
	return err
}

// traceWith is the function tracer (function_trace_init and function_trace_reset,
// kernel/trace/trace_functions.c).
func (a *asked) traceWith(calls string, flags tracers.OpsFlags, on bool) error {
	recs, err := a.matched(a.arg)
	if err != nil {
		return err
	}
	a.tracer().Release.Used = !a.firstUse
	o := a.ownOps(calls, flags)
	if on {
		a.record(true)
		a.attach(o, recs)
	} else {
		a.detach(o)
		a.record(false)
	}
	return nil
}

// doGraph is the function_graph tracer (graph_trace_init and graph_trace_reset,
// kernel/trace/trace_functions_graph.c).
func doGraph(a *asked, on bool) error {
	recs, err := a.matched(a.arg)
	if err != nil {
		return err
	}
	if on {
		a.graphUser(true, recs)
		a.record(true)
	} else {
		a.record(false)
		a.graphUser(false, recs)
	}
	return nil
}

func doFilter(a *asked, on bool) error {
	from, to, ok := strings.Cut(a.arg, ">")
	if !ok {
		return fmt.Errorf("argument %q: want two filters, as vfs_read>vfs_*", a.arg)
	}
	changed, err := a.changeFilter(from, to, on)
	if err == nil && changed == 0 {
		err = fmt.Errorf("filters %q and %q choose the same records", from, to)
	}
	return err
}

// changeFilter is ftrace_hash_move_and_update_ops: one pass over the records that only one of the filters chooses. The
// filter is that of the tracer of functions that is on; where none is, the function tracer comes first.
func (a *asked) changeFilter(from, to string, on bool) (changed int, err error) {
	old, err := a.matched(from)
	if err != nil {
		return 0, err
	}
	now, err := a.matched(to)
	if err != nil {
		return 0, err
	}
	o := a.ownOps(globalOps, 0)
	at := slices.IndexFunc([]string{globalOps, instance, graphOps, graphStub}, a.on)
	if at >= 0 {
		o = a.ops[[]string{globalOps, instance, graphOps, graphStub}[at]]
	} else {
		a.record(true)
		a.attach(o, old)
		if _, err := a.Take(); err != nil {
			return 0, err
		}
	}
	if !on {
		now = old
	}
	rep, err := a.core.SetFilter(o, now...)
	a.did(rep, err)
	return rep.Patches(), nil
}

// doPids is ftrace_update_pid_func (kernel/trace/ftrace.c, Linux 6.12): the trampoline of each function tracer that is on
// gets its function again, though it is the same.
func doPids(a *asked, _ bool) error {
	for _, calls := range []string{globalOps, instance} {
		if a.on(calls) {
			a.price(tracers.Step{Kind: tracers.StepAim, Ops: a.ops[calls]})
		}
	}
	return nil
}

// find is the event of a name, which may have its group in front.
func (a *asked) find() (image.Event, error) {
	var names []string
	for _, e := range a.k.Facts.Events {
		if e.Name == a.arg || e.Group+"/"+e.Name == a.arg {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return image.Event{}, fmt.Errorf("event %q is not in the image%s", a.arg, spelling.Hint(a.arg, names))
}

func doEvent(a *asked, on bool) error {
	e, err := a.find()
	if err == nil {
		a.event(e, on)
	}
	return err
}

// doPerfEvent is perf_trace_event_reg and its counterpart, which waits (kernel/trace/trace_event_perf.c, Linux 6.12). perf's
// users of system calls share a probe of their own.
func doPerfEvent(a *asked, on bool) error {
	e, err := a.find()
	if err == nil {
		a.probeEvent(e, "perf", on)
		if !on {
			a.waits(cpus.QuiesceCPUs, "tracepoint_synchronize_unregister")
		}
	}
	return err
}

// doTracepoint is bpf_probe_register and its counterpart (kernel/trace/bpf_trace.c).
func doTracepoint(a *asked, on bool) error {
	step := a.unhook
	if on {
		step = a.hook
	}
	a.in("tracepoint", func() { step(a.arg, "raw") })
	return nil
}

// doCalls is smp_call_function_single to every CPU in turn, as perf_install_in_context does it (kernel/events/core.c).
func doCalls(a *asked, on bool) error {
	n, err := strconv.Atoi(a.arg)
	if err != nil || n < 0 {
		return fmt.Errorf("number %q: want 0 or more", a.arg)
	}
	if on {
		a.in("function-calls", func() {
			a.sent(cpus.CoreSync, a.k.callRow, n, 1, Assumed, "functions that are called on every CPU")
		})
	}
	return nil
}

// doOption is the option record-cmd, and back again: a trace event that is on stops recording
// command lines (trace_event_enable_cmd_record, kernel/trace/trace_events.c, Linux 6.12).
func doOption(a *asked, clear bool) error {
	a.arg = cmp.Or(a.arg, "sched/sched_switch")
	e, err := a.find()
	if err != nil {
		return err
	}
	if !a.silent && clear && a.recorded == 0 {
		a.event(e, true)
		if _, err := a.Take(); err != nil {
			return err
		}
	}
	if a.silent != clear {
		a.silent = clear
		for range a.recorded {
			a.record(!clear)
		}
	}
	return nil
}

// notSwitched is the group of the tracer's own entries, which have no switch
// (TRACE_EVENT_FL_IGNORE_ENABLE).
const notSwitched = "ftrace"

func doGroup(a *asked, on bool) error {
	n := 0
	for _, e := range a.k.Facts.Events {
		if e.Group == notSwitched || a.arg != "all" && e.Group != a.arg {
			continue
		}
		n++
		a.event(e, on)
	}
	if n == 0 {
		return fmt.Errorf("no event of group %q is in the image", a.arg)
	}
	return nil
}
