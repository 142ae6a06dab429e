package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// Intermediate is turned down: the literal names a structure of the site, such as its
// record, and that names the ops.
//
//	site -> ftrace_caller -> literal -> record -> ops -> func
//
// Three loads, one more than with the ops at the site. What else is in the record is
// read apart from the pointer to the ops, so that both have to be synchronised whenever
// they change.
type Intermediate struct {
	*shared
	sites []intermediateSite
}

type intermediateSite struct {
	ip      records.Addr
	branch  atomic.Bool
	literal atomic.Pointer[record]
}

// record is struct dyn_ftrace with a pointer to the ops.
type record struct{ ops atomic.Pointer[Ops] }

// NewIntermediate is sites that all lead to nop_ops.
func NewIntermediate(sites []records.Addr, guard Guard) *Intermediate {
	w := &Intermediate{newShared(sites, guard), make([]intermediateSite, len(sites))}
	for i, ip := range sites {
		r := &record{}
		r.ops.Store(w.nopOps)
		w.sites[i].ip = ip
		w.sites[i].literal.Store(r)
	}
	return w
}

func (w *Intermediate) publish(site int, leaf *Ops) {
	s := &w.sites[site]
	s.literal.Load().ops.Store(leaf)
	s.branch.Store(leaf != w.nopOps)
}

// Attach implements Way.
func (w *Intermediate) Attach(o *Ops) error { return w.attach(o, w.publish) }

// Detach implements Way.
func (w *Intermediate) Detach(o *Ops) error { return w.detach(o, w.publish) }

// Call implements Way.
func (w *Intermediate) Call(site int, ctx *Context) {
	if s := &w.sites[site]; s.branch.Load() {
		w.through(s.ip, s.literal.Load().ops.Load(), ctx, 3)
	}
}

// Cost implements Way.
func (w *Intermediate) Cost(site int) Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cost(site, 3)
}

// OpsTrampoline is turned down where there is CALL_OPS: the literal names a trampoline
// that has the ops as an immediate.
//
//	site -> ftrace_caller -> literal -> trampoline (ops) -> func
//
// One load, of the literal; what the trampoline has is fetched. Every ops needs one,
// also those that call nothing directly, list_ops and nop_ops: memory, instruction
// cache, and an allocation that can fail. x86_64 makes one for each ops that is not in
// the kernel's image, and sites with one user call it without a literal:
// create_trampoline, arch/x86/kernel/ftrace.c.
type OpsTrampoline struct {
	*shared
	sites       []opsTrampolineSite
	trampolines map[*Ops]*opsTrampoline
}

type opsTrampolineSite struct {
	ip      records.Addr
	branch  atomic.Bool
	literal atomic.Pointer[opsTrampoline]
}

// opsTrampoline is code: run has its ops as an immediate.
type opsTrampoline struct {
	run func(ip records.Addr, ctx *Context)
}

// NewOpsTrampoline is sites that all lead to the trampoline of nop_ops.
func NewOpsTrampoline(sites []records.Addr, guard Guard) *OpsTrampoline {
	w := &OpsTrampoline{newShared(sites, guard), make([]opsTrampolineSite, len(sites)), map[*Ops]*opsTrampoline{}}
	for i, ip := range sites {
		w.sites[i].ip = ip
		w.sites[i].literal.Store(w.trampoline(w.nopOps))
	}
	return w
}

// trampoline generates the code for an ops once.
func (w *OpsTrampoline) trampoline(o *Ops) *opsTrampoline {
	t := w.trampolines[o]
	if t == nil {
		t = &opsTrampoline{func(ip records.Addr, ctx *Context) { w.through(ip, o, ctx, 1) }}
		w.trampolines[o] = t
	}
	return t
}

func (w *OpsTrampoline) publish(site int, leaf *Ops) {
	s := &w.sites[site]
	s.literal.Store(w.trampoline(leaf))
	s.branch.Store(leaf != w.nopOps)
}

// Attach implements Way.
func (w *OpsTrampoline) Attach(o *Ops) error { return w.attach(o, w.publish) }

// Detach implements Way.
func (w *OpsTrampoline) Detach(o *Ops) error {
	p := w.proxy(o)
	if err := w.detach(o, w.publish); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.trampolines, p)
	return nil
}

// Call implements Way.
func (w *OpsTrampoline) Call(site int, ctx *Context) {
	if s := &w.sites[site]; s.branch.Load() {
		s.literal.Load().run(s.ip, ctx)
	}
}

// Cost implements Way.
func (w *OpsTrampoline) Cost(site int) Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cost(site, 1)
}

// SiteTrampoline is turned down: beside the literal that names the ops, the site has
// another one for the direct trampoline.
//
//	site -> ftrace_caller -> literals: trampoline
//	                                   \-> ops -> func
//
// One load to a trampoline, two to a func, as both literals are the site's. They take
// sixteen bytes, and two stores to change: between them a call finds the trampoline of
// one and the ops of another.
type SiteTrampoline struct {
	*shared
	sites []siteTrampolineSite
}

type siteTrampolineSite struct {
	ip     records.Addr
	branch atomic.Bool
	direct atomic.Pointer[Trampoline]
	ops    atomic.Pointer[Ops]
}

// NewSiteTrampoline is sites that all name nop_ops and no trampoline.
func NewSiteTrampoline(sites []records.Addr, guard Guard) *SiteTrampoline {
	w := &SiteTrampoline{newShared(sites, guard), make([]siteTrampolineSite, len(sites))}
	for i, ip := range sites {
		w.sites[i].ip = ip
		w.sites[i].ops.Store(w.nopOps)
	}
	return w
}

func (w *SiteTrampoline) publish(site int, leaf *Ops) {
	s := &w.sites[site]
	s.ops.Store(leaf)
	s.direct.Store(leaf.direct.Load())
	s.branch.Store(leaf != w.nopOps)
}

// Attach implements Way.
func (w *SiteTrampoline) Attach(o *Ops) error { return w.attach(o, w.publish) }

// Detach implements Way.
func (w *SiteTrampoline) Detach(o *Ops) error { return w.detach(o, w.publish) }

// Call implements Way.
func (w *SiteTrampoline) Call(site int, ctx *Context) {
	s := &w.sites[site]
	if !s.branch.Load() {
		return
	}
	if t := s.direct.Load(); t != nil {
		if c := ctx.counts; c != nil {
			c.Loads++
		}
		t.jump(s.ip, ctx)
		return
	}
	w.through(s.ip, s.ops.Load(), ctx, 2)
}

// Cost implements Way.
func (w *SiteTrampoline) Cost(site int) Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.unique(site); o != nil && o.Direct {
		return Counts{Loads: 1, Called: 1}
	}
	return w.cost(site, 2)
}
