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
	ops             *tracers.Ops
	run             func(ip records.Addr, t *Task) // calls ops->func
	direct          *trampoline                    // ops->direct_call
	filter, notrace atomic.Pointer[hash]           // nil: all functions, and none
	next            atomic.Pointer[entry]          // in the list
	code            *opsTrampoline                 // where each ops has one
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

// callback is how an ops' function is called where nothing else is between.
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
// newest first, whatever they trace. Readers take no lock; who is removed keeps its
// pointer to the next, for those who stand on it.
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
		if h := e.notrace.Load(); h != nil {
			found, n := h.find(ip)
			hashes++
			if loads += n; found != nil {
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
// it has a filter the hash, the bucket and what is in it. So it is before CALL_OPS
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

// hash is a set of addresses, each with what it leads to: struct ftrace_hash in
// kernel/trace/ftrace.c. It does not change once it is built; who wants another
// one publishes another one.
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

// hashTo is a hash of addresses and what each leads to.
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
