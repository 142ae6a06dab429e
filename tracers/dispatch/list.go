// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"math/bits"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// entry is the words of an ops that CPUs read.
type entry struct {
	ops    *tracers.Ops
	run    func(ip records.Addr, t *Task) // calls ops->func
	direct *trampoline                    // ops->direct_call
	filter atomic.Pointer[hash]           // nil: all functions
	next   atomic.Pointer[entry]          // in the list
	code   *opsTrampoline                 // where each ops has one
}

// entry makes an ops readable.
func (w *Way) entry(o *tracers.Ops) *entry {
	e := &entry{ops: o}
	if o.Func != nil && o.Flags&tracers.OpsStub == 0 {
		e.run = w.run(o)
	}
	w.entries[o] = e
	return e
}

// callback calls an ops' function directly.
func callback(o *tracers.Ops) func(ip records.Addr, t *Task) {
	f := o.Func.Entry
	if f == nil {
		return nil
	}
	return func(ip records.Addr, t *Task) {
		if c := t.counts; c != nil {
			c.Called++
		}
		f(ip, o, &t.Task)
	}
}

// list is ftrace_ops_list and ftrace_ops_list_func, kernel/trace/ftrace.c: all ops, the
// newest first, whatever they trace. Readers take no lock; a removed entry keeps its
// pointer to the next, for readers that stand on it.
type list struct{ head atomic.Pointer[entry] }

// call walks all ops and calls those that trace the function (ftrace_ops_test).
func (l *list) call(ip records.Addr, t *Task) {
	bit, ok := t.Enter(tracers.ListGuard)
	if !ok {
		return
	}
	loads, hashes, walked := int64(1), int64(0), int64(0)
	for e := l.head.Load(); e != nil; e = e.next.Load() {
		walked++
		loads++
		if h := e.filter.Load(); h != nil {
			found, n := h.find(ip)
			hashes++
			if loads += n; found == nil {
				continue
			}
		}
		if e.run != nil {
			e.run(ip, t)
		}
	}
	t.Leave(bit)
	if c := t.counts; c != nil {
		c.Loads, c.Hashes, c.Walked = c.Loads+loads, c.Hashes+hashes, c.Walked+walked
	}
}

// newList is the list function for every call:
//
//	site -> ftrace_caller -> ftrace_ops_list_func -> head -> ops -> hash -> bucket -> entry
//	                                                          |                        -> func
//	                                                          -> next ops -> ...
//
// One load for the head, and for every ops that is attached anywhere: itself, and where
// it has a filter the hash, the bucket and its entries. So it is before CALL_OPS
// wherever an ops is not in the kernel's image, or more than one is attached.
func newList(c Config) (*Way, error) {
	w, err := newWay(c, words{}, true)
	if err != nil {
		return nil, err
	}
	w.path = func(site int, t *Task) {
		t.save(w.saves)
		w.list.call(w.ips[site], t)
	}
	return w, nil
}

// hash is a set of addresses, each with its trampoline, if any: struct ftrace_hash in
// kernel/trace/ftrace.c. It does not change once it is built; a change publishes
// another one.
type hash struct {
	shift   uint8
	buckets []*funcEntry
}

type funcEntry struct {
	ip   records.Addr
	to   *trampoline // in the hash of direct functions
	next *funcEntry
}

const (
	// maxHashBits is FTRACE_HASH_MAX_BITS, kernel/trace/ftrace.c.
	maxHashBits = 12
	// goldenRatio is GOLDEN_RATIO_64, include/linux/hash.h.
	goldenRatio = 0x61C8864680B583EB
)

// newHash is a hash of addresses. It has fls(n) bits, as dup_hash in kernel
// gives it, twelve at most.
func newHash(ips ...records.Addr) *hash { return hashTo(ips, nil) }

// hashTo is a hash of addresses and the trampoline of each.
func hashTo(ips []records.Addr, to []*trampoline) *hash {
	n := min(bits.Len(uint(len(ips))), maxHashBits)
	h := &hash{shift: uint8(64 - n), buckets: make([]*funcEntry, 1<<n)}
	for i, ip := range ips {
		e := &funcEntry{ip: ip, next: h.buckets[h.key(ip)]}
		if to != nil {
			e.to = to[i]
		}
		h.buckets[h.key(ip)] = e
	}
	return h
}

// key is hash_long, include/linux/hash.h.
func (h *hash) key(ip records.Addr) uint64 { return uint64(ip) * goldenRatio >> h.shift }

// find looks an address up. It takes a load for the hash, one for the bucket, and one
// for each entry of it that is looked at.
func (h *hash) find(ip records.Addr) (e *funcEntry, loads int64) {
	loads = 2
	for e = h.buckets[h.key(ip)]; e != nil; e = e.next {
		loads++
		if e.ip == ip {
			break
		}
	}
	return e, loads
}

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

// callOps is a literal at each site that names its ops: arm64 since Linux 6.3
// (baaf553d3bc3), riscv64 since 6.16.
//
//	site -> ftrace_caller -> literal -> ops -> func          one user, or
//	                                       \-> direct_call    its trampoline, or
//	                                        -> list function  several users
//
// Two loads: the literal, and the ops, once; func and direct_call are both of that one,
// so that they cannot mismatch. Ops on other functions make no difference. Several
// users share ftrace_list_ops, whose func is the list function; one that needs help
// against recursion goes that way too, also alone.
//
// Near is that a direct trampoline lies in branch range: a site whose only user it is
// calls it without any load. arch/arm64/kernel/entry-ftrace.S and ftrace.c.
//
// With a single ops for all direct trampolines (x86_64 since Linux 7.0), a function's is found by
// its address: call_direct_funcs, kernel/trace/ftrace.c.
//
//	site -> trampoline                                             near, one user
//	site -> ftrace_caller -> literal -> ops -> hash -> bucket -> entry -> trampoline
//	site -> ftrace_caller -> list function -> ... -> hash ... -> trampoline
//
// Then a site whose only user is a trampoline out of reach looks its address up for every call: five
// loads and more where a literal leads to the ops. That would be the price of taking direct_call out
// of the ops for architectures with CALL_OPS and a short branch range.
type callOps []struct {
	branch  atomic.Pointer[trampoline] // the instruction: nil ftrace_caller
	literal atomic.Pointer[entry]
}

// newCallOps is sites that all name nop_ops. Of a late caller, which has found a call where there is
// none any more, the literal is nop_ops, too.
func newCallOps(c Config, near, single bool) (*Way, error) {
	w, err := newWay(c, words{callOps: true, direct: true, near: near, single: single}, false)
	if err != nil {
		return nil, err
	}
	at := make(callOps, w.sites)
	w.name(func(site int, text tracers.Installed) {
		at[site].literal.Store(w.readable(text))
		var to *trampoline
		if w.words.near {
			to = w.direct[text.Decided]
		}
		at[site].branch.Store(to)
	})
	w.path = func(site int, t *Task) {
		if to := at[site].branch.Load(); to != nil {
			to.jump(w.ips[site], t)
		} else {
			w.through(w.ips[site], at[site].literal.Load(), t, 2)
		}
	}
	return w, nil
}

// newLiterals is a design that was turned down: it finds a site's ops in another way than by its
// literal. publish stores the ops, at first nop_ops.
func newLiterals(c Config, publish func(w *Way, site int, e *entry), path func(w *Way, site int, t *Task)) (*Way, error) {
	w, err := newWay(c, words{callOps: true, direct: true}, false)
	if err != nil {
		return nil, err
	}
	w.name(func(site int, to tracers.Installed) { publish(w, site, w.readable(to)) })
	w.path = func(site int, t *Task) { path(w, site, t) }
	return w, nil
}

// newIntermediate: the literal names a structure of the site, such as its record, and that names
// the ops.
//
//	site -> ftrace_caller -> literal -> record -> ops -> func
//
// Three loads, one more than with the ops at the site. The record's other fields are read apart
// from the pointer to the ops, so that both have to be synchronised whenever they change.
func newIntermediate(c Config) (*Way, error) {
	records := make([]struct{ ops atomic.Pointer[entry] }, len(c.Sites)) // struct dyn_ftrace with a pointer to the ops
	return newLiterals(c, func(_ *Way, site int, e *entry) { records[site].ops.Store(e) },
		func(w *Way, site int, t *Task) { w.through(w.ips[site], records[site].ops.Load(), t, 3) })
}

// newOpsTrampoline: where there is CALL_OPS, the literal names a trampoline that has the ops as an
// immediate.
//
//	site -> ftrace_caller -> literal -> trampoline (ops) -> func
//
// One load, of the literal; the trampoline's own constants are fetched with its code. Every ops
// needs a trampoline, also those that call nothing directly, list_ops and nop_ops: memory,
// instruction cache, and an allocation that can fail. x86_64 makes one for each ops that is not in
// the kernel's image, and sites with one user call it without a literal: create_trampoline,
// arch/x86/kernel/ftrace.c.
func newOpsTrampoline(c Config) (*Way, error) {
	at := make([]atomic.Pointer[opsTrampoline], len(c.Sites))
	return newLiterals(c, func(w *Way, site int, e *entry) { at[site].Store(e.trampoline(w)) },
		func(w *Way, site int, t *Task) { at[site].Load().run(w.ips[site], t) })
}

// opsTrampoline is code: run has its ops as an immediate.
type opsTrampoline struct {
	run func(ip records.Addr, t *Task)
}

// trampoline generates the code for an ops, once.
func (e *entry) trampoline(w *Way) *opsTrampoline {
	if e.code == nil {
		e.code = &opsTrampoline{func(ip records.Addr, t *Task) { w.through(ip, e, t, 1) }}
	}
	return e.code
}

// newSiteTrampoline: beside the literal that names the ops, the site has another one for the direct
// trampoline.
//
//	site -> ftrace_caller -> literals: trampoline
//	                                   \-> ops -> func
//
// One load to a trampoline, two to a func, as both literals are the site's. They take
// sixteen bytes, and two stores to change: between them a call finds the trampoline of
// one and the ops of another.
func newSiteTrampoline(c Config) (*Way, error) {
	at := make([]struct {
		direct atomic.Pointer[trampoline]
		ops    atomic.Pointer[entry]
	}, len(c.Sites))
	return newLiterals(c, func(_ *Way, site int, e *entry) {
		at[site].ops.Store(e)
		at[site].direct.Store(e.direct)
	}, func(w *Way, site int, t *Task) {
		if tr := at[site].direct.Load(); tr != nil {
			t.count(Counts{Loads: 1})
			tr.jump(w.ips[site], t)
			return
		}
		w.through(w.ips[site], at[site].ops.Load(), t, 2)
	})
}
