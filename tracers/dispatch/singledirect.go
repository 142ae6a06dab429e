package dispatch

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// SingleDirect has one ops for all direct trampolines, and finds a function's by its
// address: call_direct_funcs_hash, kernel/trace/ftrace.c, x86_64 since Linux 7.0.
//
//	site -> trampoline                                             near, one user
//	site -> ftrace_caller -> literal -> ops -> hash -> bucket -> entry -> trampoline
//	site -> ftrace_caller -> list function -> ... -> hash ... -> trampoline
//
// Near, a site whose only user is a trampoline calls it without a load. Otherwise its
// address is looked up for every call: five loads and more where a literal leads to the
// ops, which is what taking direct_call out of the ops would mean for architectures with
// CALL_OPS and a short branch range. Only direct ops, and others beside them, may be
// attached.
type SingleDirect struct {
	attached
	near    bool
	list    list
	hash    atomic.Pointer[Hash] // direct_functions
	ops     *Ops                 // direct_ops
	onList  *Ops                 // and as it is on the list now, with its filter
	sites   []callOpsSite
	nopOps  *Ops
	listOps *Ops
	links   []*Ops // direct ones
}

// NewSingleDirect has nobody attached.
func NewSingleDirect(sites []records.Addr, guard Guard, near bool) *SingleDirect {
	d := &SingleDirect{attached: newAttached(sites), near: near, list: list{guard: guard}, sites: make([]callOpsSite, len(sites))}
	d.ops = &Ops{Func: d.lookup, stub: true, Direct: true}
	d.nopOps = newNopOps()
	d.listOps = &Ops{stub: true, Func: func(ip records.Addr, _ *Ops, ctx *Context) { d.list.call(ip, ctx) }}
	for i, ip := range sites {
		d.sites[i].ip = ip
		d.sites[i].literal.Store(d.nopOps)
	}
	return d
}

// lookup is call_direct_funcs_hash.
func (d *SingleDirect) lookup(ip records.Addr, _ *Ops, ctx *Context) {
	e, loads := d.hash.Load().find(ip)
	if c := ctx.counts; c != nil {
		c.Hashes++
		c.Loads += loads
	}
	if e != nil {
		ctx.late = e.to
	}
}

// rehash publishes the hash of all direct links and puts the ops on the list with that
// as its filter. A new one is complete before the old one goes.
func (d *SingleDirect) rehash() {
	var ips []records.Addr
	var to []*Trampoline
	for _, o := range d.links {
		t := &Trampoline{Run: o.Func, of: o}
		for _, ip := range d.ips {
			if o.matches(ip) {
				ips, to = append(ips, ip), append(to, t)
			}
		}
	}
	h := hashTo(ips, to)
	d.hash.Store(h)
	old := d.onList
	d.onList = nil
	if len(d.links) > 0 {
		d.onList = &Ops{Func: d.lookup, stub: true, Filter: h}
		d.list.push(d.onList)
	}
	if old != nil {
		d.list.remove(old)
	}
}

// publish writes what a site needs.
func (d *SingleDirect) publish(site int) {
	s := &d.sites[site]
	o := d.unique(site)
	switch {
	case len(d.users[site]) == 0:
		s.literal.Store(d.nopOps)
		s.branch.Store(nil)
	case o == nil || o.assisted():
		s.literal.Store(d.listOps)
		s.branch.Store(ftraceCaller)
	case !o.Direct:
		s.literal.Store(o)
		s.branch.Store(ftraceCaller)
	case d.near:
		e, _ := d.hash.Load().find(s.ip)
		s.branch.Store(e.to)
	default:
		s.literal.Store(d.ops)
		s.branch.Store(ftraceCaller)
	}
}

// Attach implements Way: the hash is published before the sites.
func (d *SingleDirect) Attach(o *Ops) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hasDirect(o) {
		return fmt.Errorf("attach directly: %w", ErrBusy)
	}
	sites, err := d.add(o)
	if err != nil {
		return err
	}
	if o.Direct {
		d.links = append(d.links, o)
		d.rehash()
	} else {
		d.list.push(o)
	}
	for _, i := range sites {
		d.publish(i)
	}
	return nil
}

// Detach implements Way: the hash is replaced once the sites are.
func (d *SingleDirect) Detach(o *Ops) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	sites, err := d.remove(o)
	if err != nil {
		return err
	}
	for _, i := range sites {
		d.publish(i)
	}
	if !o.Direct {
		d.list.remove(o)
		return nil
	}
	d.links = slices.DeleteFunc(d.links, func(l *Ops) bool { return l == o })
	d.rehash()
	return nil
}

// Call implements Way.
func (d *SingleDirect) Call(site int, ctx *Context) {
	s := &d.sites[site]
	to := s.branch.Load()
	if to == nil {
		return
	}
	if to != ftraceCaller {
		to.jump(s.ip, ctx)
		return
	}
	ctx.save(ArgRegisters)
	o := s.literal.Load()
	if c := ctx.counts; c != nil {
		c.Loads += 2
		if !o.stub {
			c.Called++
		}
	}
	was := ctx.late
	ctx.late = nil
	o.Func(s.ip, o, ctx)
	late := ctx.late
	ctx.late = was
	if late != nil {
		late.jump(s.ip, ctx)
	}
}

// Cost implements Way.
func (d *SingleDirect) Cost(site int) Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	users, o := d.users[site], d.unique(site)
	c := Counts{Loads: 2, Called: int64(len(users)), Saved: ArgRegisters}
	switch {
	case len(users) == 0:
		return Counts{}
	case o != nil && o.Direct && d.near:
		return Counts{Called: 1}
	case o != nil && o.Direct:
		return c.Add(d.hash.Load().cost(d.ips[site]))
	case o != nil && !o.assisted():
		return c
	}
	c.Loads++ // the list's head
	for _, o := range d.all {
		switch {
		case o.Direct:
			continue
		case o.Filter != nil:
			c = c.Add(o.Filter.cost(d.ips[site]))
		}
		c.Loads, c.Walked = c.Loads+1, c.Walked+1
	}
	if len(d.links) > 0 { // all of them together
		c = c.Add(d.hash.Load().cost(d.ips[site])).Add(Counts{Loads: 1, Walked: 1})
	}
	if slices.ContainsFunc(users, func(o *Ops) bool { return o.Direct }) {
		c = c.Add(d.hash.Load().cost(d.ips[site]))
	}
	return c
}
