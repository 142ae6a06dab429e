package dispatch

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// shared is what ways have in common that give each site what its users need: nobody,
// the unique ops, or the list function for several.
type shared struct {
	attached
	list    list
	nopOps  *Ops
	listOps *Ops
	proxies map[*Ops]*Ops // of direct ops: what is on the list and at sites for them
	saves   int
}

// newShared is a beginning; nopOps and listOps are ftrace_nop_ops and ftrace_list_ops,
// kernel/trace/ftrace.c.
func newShared(sites []records.Addr, guard Guard) *shared {
	s := &shared{attached: newAttached(sites), list: list{guard: guard}, proxies: map[*Ops]*Ops{}, saves: ArgRegisters}
	s.nopOps = newNopOps()
	s.listOps = &Ops{stub: true, Func: func(ip records.Addr, _ *Ops, ctx *Context) { s.list.call(ip, ctx) }}
	return s
}

// newNopOps is ftrace_nop_ops: who comes late to a site that is disabled finds it.
func newNopOps() *Ops { return &Ops{stub: true, Func: func(records.Addr, *Ops, *Context) {}} }

// callDirect is call_direct_funcs: the trampoline is gone to on the way out.
func callDirect(_ records.Addr, o *Ops, ctx *Context) { ctx.late = o.direct.Load() }

// proxy is the ops by which an attached one is known to sites and to the list.
func (s *shared) proxy(o *Ops) *Ops {
	if !o.Direct {
		return o
	}
	if p := s.proxies[o]; p != nil {
		return p
	}
	p := &Ops{Func: callDirect, Filter: o.Filter, Direct: true, stub: true}
	p.direct.Store(&Trampoline{Run: o.Func, of: o})
	s.proxies[o] = p
	return p
}

// leaf is what a site's literal is to name.
func (s *shared) leaf(site int) *Ops {
	switch o := s.unique(site); {
	case len(s.users[site]) == 0:
		return s.nopOps
	case o == nil || o.assisted():
		return s.listOps
	default:
		return s.proxy(o)
	}
}

// attach attaches, and lets publish write what changes at a site.
func (s *shared) attach(o *Ops, publish func(site int, leaf *Ops)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasDirect(o) {
		return fmt.Errorf("attach directly: %w", ErrBusy)
	}
	sites, err := s.add(o)
	if err != nil {
		return err
	}
	s.list.push(s.proxy(o)) // first: a site may need the list from now on
	for _, i := range sites {
		publish(i, s.leaf(i))
	}
	return nil
}

// detach is the other half; sites change before the list does.
func (s *shared) detach(o *Ops, publish func(site int, leaf *Ops)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sites, err := s.remove(o)
	if err != nil {
		return err
	}
	for _, i := range sites {
		publish(i, s.leaf(i))
	}
	s.list.remove(s.proxy(o))
	delete(s.proxies, o)
	return nil
}

// through goes on from the ops that a site has led to; loads are those so far.
func (s *shared) through(ip records.Addr, o *Ops, ctx *Context, loads int64) {
	if t := o.direct.Load(); t != nil {
		if c := ctx.counts; c != nil {
			c.Loads += loads
		}
		t.jump(ip, ctx)
		return
	}
	ctx.save(s.saves)
	if c := ctx.counts; c != nil {
		c.Loads += loads
		if !o.stub {
			c.Called++
		}
	}
	was := ctx.late
	ctx.late = nil
	o.Func(ip, o, ctx)
	late := ctx.late
	ctx.late = was
	if late != nil {
		late.jump(ip, ctx)
	}
}

// cost is what through takes with so many loads on the way to the ops.
func (s *shared) cost(site int, loads int64) Counts {
	users := len(s.users[site])
	c := Counts{Loads: loads, Called: int64(users)}
	o := s.unique(site)
	switch {
	case users == 0:
		return Counts{}
	case o != nil && o.Direct:
		return c
	case o == nil || o.assisted():
		c = s.listCost(site).Add(Counts{Loads: loads})
	}
	c.Saved = int64(s.saves)
	return c
}
