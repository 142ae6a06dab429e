// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/kernels/image"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/tracers"
)

// Replay goes through what a kernel does, and notes what that sends. It keeps what
// decides about the next step: who hooks a tracepoint, which keys are on, and the
// function tracer with all who are attached to it.
type Replay struct {
	k        *Kernel
	lines    []Line
	work     Work
	err      error
	part     string
	hooks    map[string][]string // probes of tracepoints, in the order in which they came
	keys     map[string]int      // users of keys
	shared   map[string]int      // users of what several events or probes share
	command  int                 // users of recording of command lines
	silent   bool                // trace events do not record command lines (option record-cmd)
	recorded int                 // trace events that are on, and record them unless that is so
	firstUse bool                // trampolines of the kernel's own ops are yet to be made
	loaded   []*image.Module
	// noModules tells that no other module is loaded, and the cache of executable memory is empty (mm/execmem.c).
	noModules bool
	functions
}

// Line is one thing that is sent, in the order in which it is.
type Line struct {
	Entry
	Records int // changed by the update of records that the line stands for; 0 for others
	Batches int // in which they are

	pass *tracers.Pass
}

// Waits tells that the line is a wait for a grace period.
func (l *Line) Waits() bool { return l.Cause >= cpus.Quiesce }

// NewReplay starts with a kernel after boot: only the kernel's own ops are attached, and keys
// are off. Then it replays the facts of the kernel's state. Actions choose from the records of
// a table; where it is nil, only their number is known. It fails for a kernel of which only
// ledgers are known.
func (k *Kernel) NewReplay(t *records.Table) (*Replay, error) {
	if k.Facts == nil {
		return nil, fmt.Errorf("kernel %s: only what its ledgers tell is known, no image", k.Name())
	}
	r := &Replay{k: k, hooks: map[string][]string{}, keys: map[string]int{}, shared: map[string]int{},
		functions: functions{table: t, total: k.Facts.Records}}
	if err := r.tellAll(k.state); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name(), err)
	}
	return r, nil
}

// Take is what was sent since the last time, and the first thing that the rules do not
// cover.
func (r *Replay) Take() ([]Line, error) {
	lines, err := r.lines, r.err
	r.lines, r.work, r.err = nil, Work{}, nil
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", r.k.Name(), err)
	}
	return lines, nil
}

func (r *Replay) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// mech is a mechanism's value; one that is not understood ends the replay.
func (r *Replay) mech(name string) int {
	if err := r.k.Facts.needs(name); err != nil && r.err == nil {
		r.err = err
	}
	return r.k.Facts.value(name)
}

// in names the part of an action's work that f does.
func (r *Replay) in(part string, f func()) {
	outer := r.part
	if outer == "" {
		r.part = part
	}
	f()
	r.part = outer
}

// sent notes pokes of so many rounds each; nothing is not noted.
func (r *Replay) sent(cause cpus.Cause, row string, pokes, each int, basis Basis, source string) {
	r.note(Entry{Cause: cause, Row: row, Pokes: pokes, RoundsPerPoke: each, Basis: basis, Source: source})
}

// note notes an entry, unless it sends nothing.
func (r *Replay) note(e Entry) {
	if e.Rounds() == 0 {
		return
	}
	e.Part = r.part
	r.lines = append(r.lines, Line{Entry: e})
}

// waits notes that the switching task waits for a grace period, which interrupts no CPU.
func (r *Replay) waits(what cpus.Cause, name string) {
	r.lines = append(r.lines, Line{Entry: Entry{Part: "grace-period", Cause: what, Pokes: 1, Basis: r.k.Facts.code(), Source: name}})
}

// key changes a key's branches (jump_label_update, kernel/jump_label.c).
func (r *Replay) key(name string, branches int) {
	if branches == 0 {
		return
	}
	source := fmt.Sprintf("%d branches of %s", branches, name)
	each := r.mech(image.BatchRounds)
	switch err := r.k.Facts.needs(image.BatchSlots); {
	case r.mech(image.KeyBatched) == 0:
	case err != nil && branches > 1:
		r.note(Entry{Cause: cpus.StaticKey, Row: r.k.callRow, Pokes: 1, RoundsPerPoke: each, More: (branches - 1) * each,
			Basis: Assumed, Source: fmt.Sprintf("%s, in one batch up to as many: %v", source, err)})
	default:
		r.sent(cpus.StaticKey, r.k.callRow, r.batches(branches, sched.Ascending), each, r.k.Facts.numbers(), source+", in batches")
	}
	r.sent(cpus.StaticKey, r.k.callRow, branches, r.mech(image.BranchRounds), r.k.Facts.numbers(), source+", one by one")
	r.sent(cpus.StaticKey, r.k.callRow, 1, r.mech(image.KeyRounds), r.k.Facts.numbers(), source)
	r.sent(cpus.StaticKey, r.k.SyncRow, branches, r.mech(image.BranchFences), r.k.Facts.numbers(), source+", one by one")
	r.sent(cpus.StaticKey, r.k.SyncRow, 1, r.mech(image.KeyFences), r.k.Facts.numbers(), source)
}

// use gives a key a user, or takes one: only the first and the last change text.
func (r *Replay) use(name string, on bool) {
	branches, ok := r.k.Facts.Keys[name]
	if !ok && r.k.Facts.Unnamed && r.mech(image.KeyBatched)+r.mech(image.BranchRounds)+r.mech(image.BranchFences) == 0 {
		branches, ok = 1, true // any number of them costs the same
	}
	if !ok {
		r.fail("static key %q is not in the image, or has no branch that stays", name)
		return
	}
	if on {
		if r.keys[name]++; r.keys[name] == 1 {
			r.keyEverywhere(name, name, branches)
		}
		return
	}
	if r.keys[name]--; r.keys[name] == 0 {
		r.keyEverywhere(name, name, branches)
	}
}

// keyEverywhere changes a key's branches in the kernel, and then in each module that was loaded
// (__jump_label_mod_update, kernel/jump_label.c): each has batches of its own.
func (r *Replay) keyEverywhere(name, symbol string, branches int) {
	r.key(name, branches)
	for _, m := range r.loaded {
		r.key(name+" in "+m.Name, m.Keys[symbol])
	}
}

// call gives a static call another function: its trampoline and its sites, one by one
// (__static_call_update, kernel/static_call_inline.c).
func (r *Replay) call(name string) {
	c, ok := r.k.Facts.Calls[name]
	if !ok {
		return // a kernel without static calls, or one without this
	}
	sites := c.Sites
	for _, m := range r.loaded {
		sites += m.Calls["__SCK__"+name]
	}
	pokes := sites
	if c.Trampoline {
		pokes++
	}
	r.staticCalls(pokes, fmt.Sprintf("trampoline and %d sites of %s", sites, name))
}

// staticCalls notes the pokes of a static call's sites, or of a module's.
func (r *Replay) staticCalls(pokes int, of string) {
	if each := r.mech(image.CallRounds); r.k.Facts.value(image.CallBatched) == 0 {
		r.sent(cpus.StaticCall, r.k.callRow, pokes, each, r.k.Facts.numbers(), of+", one by one")
		return
	}
	r.batched(cpus.StaticCall, pokes, "pokes: "+of)
}

// hook gives a tracepoint a probe (tracepoint_add_func, kernel/tracepoint.c).
func (r *Replay) hook(tracepoint, probe string) {
	tp, ok := r.k.Facts.Tracepoints[tracepoint]
	if !ok {
		r.fail("tracepoint %q is not in the image", tracepoint)
		return
	}
	r.hooks[tracepoint] = append(r.hooks[tracepoint], probe)
	switch len(r.hooks[tracepoint]) {
	case 1:
		for _, key := range tp.Switches {
			r.use(key, true)
		}
		r.call(image.CallOf(tracepoint))
		r.keyEverywhere(tracepoint, "__tracepoint_"+tracepoint, tp.Branches)
	case 2:
		r.call(image.CallOf(tracepoint))
	}
}

// unhook takes a probe away (tracepoint_remove_func).
func (r *Replay) unhook(tracepoint, probe string) {
	tp := r.k.Facts.Tracepoints[tracepoint]
	i := slices.Index(r.hooks[tracepoint], probe)
	if i < 0 {
		return
	}
	r.hooks[tracepoint] = slices.Delete(r.hooks[tracepoint], i, i+1)
	switch len(r.hooks[tracepoint]) {
	case 0:
		for _, key := range tp.Switches {
			r.use(key, false)
		}
		r.keyEverywhere(tracepoint, "__tracepoint_"+tracepoint, tp.Branches)
		if r.mech(image.CallResets) > 0 {
			r.call(image.CallOf(tracepoint))
		}
	case 1:
		r.call(image.CallOf(tracepoint))
	}
}

// record starts or stops recording of command lines (tracing_start_cmdline_record,
// kernel/trace/trace_sched_switch.c).
func (r *Replay) record(on bool) {
	const probe = "command-lines"
	if len(r.k.Facts.Recorder) == 0 {
		r.fail("command lines: no rule holds: the tracepoints that recording them hooks are not found")
	}
	r.in(probe, func() {
		if on {
			if r.command++; r.command == 1 {
				for _, tp := range r.k.Facts.Recorder {
					r.hook(tp, probe)
				}
			}
			return
		}
		if r.command--; r.command == 0 {
			for _, tp := range slices.Backward(r.k.Facts.Recorder) {
				r.unhook(tp, probe)
			}
		}
	})
}

// recordEvent is the same for a trace event, which the option record-cmd decides about.
func (r *Replay) recordEvent(on bool) {
	if r.recorded--; on {
		r.recorded += 2
	}
	if !r.silent {
		r.record(on)
	}
}

// syscalls is the group of events that share a probe on all system calls' way in, and
// one on their way out (reg_event_syscall_enter, kernel/trace/trace_syscalls.c).
const syscalls = "syscalls"

// event enables a trace event, or disables it (__ftrace_event_enable_disable,
// kernel/trace/trace_events.c).
func (r *Replay) event(e image.Event, on bool) {
	r.recordEvent(on)
	r.probeEvent(e, "ftrace", on)
}

// probeEvent hooks the tracepoint of an event for ftrace or perf, or unhooks it.
func (r *Replay) probeEvent(e image.Event, client string, on bool) {
	tp, probe := e.Tracepoint, client+" "+e.Group+"/"+e.Name
	if e.Group == syscalls {
		tp, probe = "sys_enter", client+" "+syscalls
		if strings.HasPrefix(e.Name, "exit_") || strings.HasPrefix(e.Name, "sys_exit_") {
			tp = "sys_exit"
		}
		users := client + " " + tp
		before := r.shared[users]
		if r.shared[users]++; !on {
			r.shared[users] -= 2
		}
		if before > 0 && r.shared[users] > 0 {
			tp = ""
		}
	}
	step := r.hook
	if !on {
		step = r.unhook
	}
	if tp != "" {
		r.in("tracepoint", func() { step(tp, probe) })
	}
}
