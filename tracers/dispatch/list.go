// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
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
func (b *base) entry(o *tracers.Ops) *entry {
	e := &entry{ops: o}
	if o.Func != nil && o.Flags&tracers.OpsStub == 0 {
		e.run = b.run(o)
	}
	b.entries[o] = e
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

// cost is the loads of asking an ops, and its answer.
func (e *entry) cost(ip records.Addr) (c Counts, traced bool) {
	c, traced = Counts{Loads: 1, Walked: 1}, true
	if h := e.filter.Load(); h != nil {
		c, traced = c.Add(h.cost(ip)), h.contains(ip)
	}
	if h := e.notrace.Load(); h != nil && traced {
		c, traced = c.Add(h.cost(ip)), !h.contains(ip)
	}
	return c, traced
}

// listCost is the cost of a walk over the attached ops.
func (b *base) listCost(site int) Counts {
	c := Counts{Loads: 1}
	for o := range b.core.List() {
		e := b.entries[o]
		one, traced := e.cost(b.ips[site])
		if c = c.Add(one); traced && e.run != nil {
			c.Called++
			if o == b.single {
				c = c.Add(b.lookupCost(site))
			}
		}
	}
	return c
}

// List is the list function for every call:
//
//	site -> ftrace_caller -> ftrace_ops_list_func -> head -> ops -> hash -> bucket -> entry
//	                                                          |                        -> func
//	                                                          -> next ops -> ...
//
// One load for the head, and for every ops that is attached anywhere: itself, and where
// it has a filter the hash, the bucket and what is in it. So it is before CALL_OPS
// wherever an ops is not in the kernel's image, or more than one is attached.
type List struct {
	*base
	calls []atomic.Bool // the sites' instructions: calls, or nops
}

// NewList is a list function without ops.
func NewList(c Config) (*List, error) {
	b, err := newBase(c, words{}, true)
	if err != nil {
		return nil, err
	}
	l := &List{b, make([]atomic.Bool, b.sites)}
	b.text = func(site int, to tracers.Installed) { l.calls[site].Store(to.Decided != 0) }
	return l, nil
}

// Call implements Way.
func (l *List) Call(site int, t *Task) {
	if l.calls[site].Load() {
		t.save(l.saves)
		l.list.call(l.ips[site], t)
	}
}

// Cost implements Way.
func (l *List) Cost(site int) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.core.Text(site).Decided == 0 {
		return Counts{}
	}
	return l.listCost(site).Add(Counts{Saved: int64(l.saves)})
}
