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
	"github.com/textpoke/textpoke/kernels/uprobes"
	"github.com/textpoke/textpoke/tracers"
)

// defaultSymbol is the function to probe unless the action names one.
const defaultSymbol = "vfs_read"

// can fails with the reason where a kernel cannot do something, whose mechanism is 0.
func (r *Replay) can(name, what string) bool {
	if r.mech(name) > 0 {
		return true
	}
	r.fail("%s: no rule holds: %s", what, r.k.Facts.Mechanisms[name].Evidence)
	return false
}

// graphUser is register_ftrace_graph and its counterpart (kernel/trace/fgraph.c).
func (r *Replay) graphUser(on bool, recs []int) {
	calls, flags := graphOps, tracers.OpsGraph
	if r.mech(image.GraphOwnFunc) == 0 {
		calls, flags = graphStub, tracers.OpsGraph|tracers.OpsStub
	}
	const probe = "own-probe"
	o := r.ownOps(calls, flags)
	if on {
		if r.on(calls) {
			r.fail("function_graph is on: no rule holds for a second user of it")
			return
		}
		r.fastPath()
		r.in(probe, func() { r.hook("sched_switch", probe) })
		r.did(r.core.SetFilter(o, recs...))
		r.did(r.core.StartGraph(o))
		return
	}
	r.did(r.core.StopGraph(o))
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

// doProbe is an event of a kprobe, which records command lines as every event does.
func doProbe(a *asked, on bool) error {
	a.recordEvent(on)
	return doPerfProbe(a, on)
}

// doPerfProbe is the same for perf and BPF (perf_kprobe_init, kernel/trace/trace_event_perf.c).
func doPerfProbe(a *asked, on bool) error {
	symbol, offset, _ := strings.Cut(a.arg, "+")
	where, err := strconv.ParseUint(cmp.Or(offset, "0"), 0, 64)
	if err != nil {
		return fmt.Errorf("offset %q: want a number", offset)
	}
	symbol = cmp.Or(symbol, defaultSymbol)
	rec, err := a.named(symbol)
	if err != nil {
		return err
	}
	if where == 0 && a.mech(image.ProbeOnRecord) > 0 {
		a.probe(rec, on)
	} else {
		a.breakpoint(where != 0, on)
	}
	return nil
}

// probe is a kprobe on a record: all of them share an ops, and those of one function the
// record (__arm_kprobe_ftrace and register_aggr_kprobe, kernel/kprobes.c).
func (r *Replay) probe(rec int, on bool) {
	o, key := r.ownOps(kprobeOps, tracers.OpsSaveRegs), fmt.Sprint("kprobe ", rec)
	users := r.shared[key]
	if r.shared[key]++; !on {
		r.shared[key] -= 2
	}
	others := slices.DeleteFunc(slices.Clone(o.Filter), func(other int) bool { return other == rec })
	switch {
	case on && users > 0 || !on && users != 1: // another one is there, or was not
	case on && !r.on(kprobeOps):
		r.attach(o, []int{rec})
	case on:
		r.did(r.core.SetFilter(o, append(others, rec)...))
	case len(others) == 0:
		r.detach(o)
		o.Filter = nil
	default:
		r.did(r.core.SetFilter(o, others...))
	}
}

// breakpoint is a kprobe that lies on no record, or where records are not used for it. One
// inside of a function may be optimised.
func (r *Replay) breakpoint(inside, on bool) {
	optimised := func() {
		if inside && r.mech(image.BatchRounds) > 0 && r.mech(image.ProbeRounds) > 0 {
			n := r.mech(image.BatchRounds)
			if !on {
				n = 2 // breakpoint, round, tail, round: arch_unoptimize_kprobe, arch/x86/kernel/kprobes/opt.c
			}
			r.note(Entry{Cause: cpus.EntryCall, Row: r.k.callRow, Pokes: 1, RoundsPerPoke: n, Fewer: n, Basis: Assumed,
				Source: "the probe is optimised, where its instructions allow it, or was"})
		}
	}
	r.in("breakpoint", func() {
		if !on {
			optimised()
		}
		r.sent(cpus.EntryCall, r.k.callRow, 1, r.mech(image.ProbeRounds), r.k.Facts.code(),
			"a breakpoint is placed, or taken away")
		r.sent(cpus.Stop, r.k.StopRow, 1, r.mech(image.ProbeStops), r.k.Facts.code(),
			"every CPU stands still while a breakpoint is placed, or taken away")
		if on {
			optimised()
		}
	})
}

// program attaches a BPF program to one function, or detaches the last one.
func (a *asked) program(on bool, kind tracers.ProgKind) error {
	symbol := cmp.Or(a.arg, defaultSymbol)
	rec, err := a.named(symbol)
	if err != nil {
		return err
	}
	a.mech(image.DirectShared)
	if !a.can(image.DirectCalls, "direct calls") {
		return nil
	}
	progs := a.progs[symbol]
	if on {
		a.count++
		p := tracers.Prog{Kind: kind, Number: a.count}
		a.progs[symbol] = append(progs, p)
		a.did(a.bpf.Link(rec, p))
		return nil
	}
	if len(progs) == 0 {
		return fmt.Errorf("no program is on %s", symbol)
	}
	a.progs[symbol] = progs[:len(progs)-1]
	a.did(a.bpf.Unlink(rec, progs[len(progs)-1]))
	return nil
}

// first links to the first so many records, or ends the link.
func (a *asked) first(on bool, link func(r *Replay, on bool, recs []int)) error {
	n, err := strconv.Atoi(cmp.Or(a.arg, "1"))
	if err != nil || n < 1 {
		return fmt.Errorf("number %q: want 1 or more", a.arg)
	}
	all := len(a.tracer().Records)
	if n > all {
		return fmt.Errorf("number %d: there are %d records", n, all)
	}
	link(a.Replay, on, spelling.Numbers(n))
	return nil
}

func doMulti(a *asked, on bool) error {
	if _, err := strconv.Atoi(cmp.Or(a.arg, "1")); err == nil {
		return a.first(on, (*Replay).multi)
	}
	recs, err := a.matched(a.arg)
	if err == nil {
		a.multi(on, recs)
	}
	return err
}

// multi is kprobe_multi on functions: an fprobe (kernel/trace/fprobe.c).
func (r *Replay) multi(on bool, recs []int) {
	if !r.can(image.MultiProbes, "kprobe-multi") {
		return
	}
	if r.mech(image.MultiGraph) > 0 {
		r.graphUser(on, recs)
		return
	}
	o := r.ownOps(fprobeEach, tracers.OpsDynamic)
	if r.mech(image.MultiStatic) > 0 {
		o = r.ownOps(fprobeOps, 0)
	}
	if !on {
		r.detach(o)
		return
	}
	if o.Flags&tracers.OpsDynamic != 0 {
		r.split()
	}
	r.attach(o, recs)
}

// split is a flush for a large page of the direct map. The first change of protection of a
// page in it splits it (__split_large_page, arch/x86/mm/pat/set_memory.c, Linux 6.12): the
// first link after boot was seen to do so, later ones were not.
func (r *Replay) split() {
	if flushes := r.mech(image.TrampFlushes); flushes > 0 && flushes < cachedFree {
		r.in("tracer-trampoline", func() {
			n := r.mech(image.PageFlushes)
			r.note(Entry{Cause: cpus.PageAttributes, Row: r.k.callRow, Pokes: 1, RoundsPerPoke: n, Fewer: n, Basis: Assumed,
				Source: "a large page of the direct map is split, where no page of it was changed before"})
		})
	}
}

// tracingMulti is one BPF link to many functions (bpf_trampoline_multi_attach): only the
// records are batched.
func (r *Replay) tracingMulti(on bool, recs []int) {
	if !r.can(image.DirectMulti, "tracing-multi") {
		return
	}
	p := tracers.Prog{Kind: tracers.FEntry, Number: -2}
	r.tracer()
	if on {
		r.did(r.bpf.LinkMulti(recs, p))
	} else {
		r.did(r.bpf.UnlinkMulti(recs, p))
	}
}

// doUprobes probes all sites of a program. When it is switched on, the program itself sends the
// rounds, in each process at the first hit of a site; when it is switched off, the task that
// removes the probes sends them. A table holds the behaviour of each release, and the image must
// not contradict it.
func doUprobes(a *asked, on bool) error {
	if a.mech(image.BatchRounds) == 0 {
		return fmt.Errorf("kernel of %s: only x86-64 replaces the breakpoints of probes", a.k.Arch)
	}
	p, processes, err := uprobes.OpenTarget(a.arg)
	if err != nil {
		return err
	}
	nop := a.mech(image.UprobeCalls)
	for i, sites := range p.Count() {
		insn := uprobes.Insn(i)
		b, err := uprobes.OfImage(a.k.Release, nop, insn)
		switch {
		case err != nil:
			return err
		case !b.Known:
			return fmt.Errorf("mechanism %s: no rule holds: no measurement shows how releases such as %s treat probes "+
				"where the image says: %s", image.UprobeCalls, a.k.Release, a.k.Facts.Mechanisms[image.UprobeCalls].Evidence)
		case b.Refused && sites > 0:
			return fmt.Errorf("program %s: release %s refuses probes on %d sites of a %v", p.File, a.k.Release, sites, insn)
		}
		a.uprobes(b, insn, sites, processes, on)
	}
	return nil
}

// uprobes notes what probes on sites of one instruction cost.
func (r *Replay) uprobes(b uprobes.Behaviour, insn uprobes.Insn, sites, processes int, on bool) {
	cost := b.Cost(sites, processes)
	if r.k.Facts.value(image.UprobeBatched) > 0 {
		cost.FirstHit = b.Cost(min(1, sites), processes).FirstHit
	}
	const each = uprobes.Rounds
	r.in("uprobe", func() {
		switch {
		case on:
			r.sent(cpus.Sync, r.k.callRow, cost.FirstHit/each, each, r.k.Facts.code(),
				fmt.Sprintf("%d sites of a %v become calls in %d processes, each when it is first hit", sites, insn, processes))
		case b.Restores:
			r.sent(cpus.Sync, r.k.callRow, cost.Disable/each, each, r.k.Facts.code(),
				fmt.Sprintf("%d sites of a %v are put back in %d processes", sites, insn, processes))
		default:
			r.sent(cpus.CoreSync, r.k.callRow, cost.Disable, 1, Assumed,
				fmt.Sprintf("RCU, once for each of %d probes that go", sites))
			woken := b.Woken(sites)
			r.note(Entry{Cause: cpus.CoreSync, Row: r.k.callRow, Pokes: woken, RoundsPerPoke: 1, Fewer: woken, More: (sites + 3) / 4,
				Basis: Assumed, Source: "grace periods of RCU tasks wake idle CPUs, for every other probe once more; an isolated one is let alone"})
		}
	})
}
