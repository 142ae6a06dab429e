package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// list is ftrace_ops_list and ftrace_ops_list_func, kernel/trace/ftrace.c: all ops, the
// newest first, whatever they trace. Readers take no lock; who is removed keeps its
// pointer to the next, for those who stand on it.
type list struct {
	guard Guard
	head  atomic.Pointer[Ops]
}

func (l *list) push(o *Ops) {
	o.next.Store(l.head.Load())
	l.head.Store(o)
}

func (l *list) remove(o *Ops) {
	at := &l.head
	for at.Load() != o {
		at = &at.Load().next
	}
	at.Store(o.next.Load())
}

// call walks all ops and calls those that trace the function.
func (l *list) call(ip records.Addr, ctx *Context) {
	bit, ok := l.guard.enter(ctx, listBits)
	if !ok {
		return
	}
	loads, hashes, walked, called := int64(1), int64(0), int64(0), int64(0)
	for o := l.head.Load(); o != nil; o = o.next.Load() {
		walked++
		loads++
		if o.Filter != nil {
			hashes++
			e, n := o.Filter.find(ip)
			loads += n
			if e == nil {
				continue
			}
		}
		if !o.stub {
			called++
		}
		o.Func(ip, o, ctx)
	}
	l.guard.leave(ctx, bit)
	if c := ctx.counts; c != nil {
		c.Loads, c.Hashes, c.Walked, c.Called = c.Loads+loads, c.Hashes+hashes, c.Walked+walked, c.Called+called
	}
}

// listCost is what a walk takes, from who is attached.
func (a *attached) listCost(site int) Counts {
	c := Counts{Loads: 1 + int64(len(a.all)), Walked: int64(len(a.all)), Called: int64(len(a.users[site]))}
	for _, o := range a.all {
		if o.Filter != nil {
			c = c.Add(o.Filter.cost(a.ips[site]))
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
	attached
	list  list
	calls []atomic.Bool // the sites' instructions: calls, or nops
	saves int
}

// NewList is a list function that nobody is attached to.
func NewList(sites []records.Addr, guard Guard) *List {
	return &List{attached: newAttached(sites), list: list{guard: guard}, calls: make([]atomic.Bool, len(sites)), saves: ArgRegisters}
}

// Attach implements Way.
func (l *List) Attach(o *Ops) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sites, err := l.add(o)
	if err != nil {
		return err
	}
	l.list.push(o)
	for _, i := range sites {
		l.calls[i].Store(true)
	}
	return nil
}

// Detach implements Way.
func (l *List) Detach(o *Ops) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sites, err := l.remove(o)
	if err != nil {
		return err
	}
	l.list.remove(o)
	for _, i := range sites {
		l.calls[i].Store(len(l.users[i]) > 0)
	}
	return nil
}

// Call implements Way.
func (l *List) Call(site int, ctx *Context) {
	if l.calls[site].Load() {
		ctx.save(l.saves)
		l.list.call(l.ips[site], ctx)
	}
}

// Cost implements Way.
func (l *List) Cost(site int) Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.users[site]) == 0 {
		return Counts{}
	}
	return l.listCost(site).Add(Counts{Saved: int64(l.saves)})
}
