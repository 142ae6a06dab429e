package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// CallOps gives each site a literal that names its ops: arm64 since Linux 6.3
// (baaf553d3bc3), riscv64 since 6.16.
//
//	site -> ftrace_caller -> literal -> ops -> func          one user, or
//	                                       \-> direct_call    its trampoline, or
//	                                        -> list function  several users
//
// Two loads: the literal, and the ops, once; func and direct_call are both of that one,
// so that they cannot mismatch. Who is attached elsewhere makes no difference. Several
// users share ftrace_list_ops, whose func is the list function; one that needs help
// against recursion goes that way too, also alone.
//
// Near is that a direct trampoline lies in branch range: a site whose only user it is
// calls it without any load. arch/arm64/kernel/entry-ftrace.S and ftrace.c.
type CallOps struct {
	*shared
	near  bool
	sites []callOpsSite
}

type callOpsSite struct {
	ip      records.Addr
	branch  atomic.Pointer[Trampoline] // the instruction: nil a nop
	literal atomic.Pointer[Ops]
}

// ftraceCaller is what sites call that call no trampoline themselves.
var ftraceCaller = &Trampoline{}

// NewCallOps is sites that all name nop_ops.
func NewCallOps(sites []records.Addr, guard Guard, near bool) *CallOps {
	c := &CallOps{shared: newShared(sites, guard), near: near, sites: make([]callOpsSite, len(sites))}
	for i, ip := range sites {
		c.sites[i].ip = ip
		c.sites[i].literal.Store(c.nopOps)
	}
	return c
}

// publish writes the literal before the branch: a late caller finds nop_ops.
func (c *CallOps) publish(site int, leaf *Ops) {
	s := &c.sites[site]
	s.literal.Store(leaf)
	to := ftraceCaller
	switch {
	case leaf == c.nopOps:
		to = nil
	case c.near && leaf.Direct:
		to = leaf.direct.Load()
	}
	s.branch.Store(to)
}

// Attach implements Way.
func (c *CallOps) Attach(o *Ops) error { return c.attach(o, c.publish) }

// Detach implements Way.
func (c *CallOps) Detach(o *Ops) error { return c.detach(o, c.publish) }

// Call implements Way.
func (c *CallOps) Call(site int, ctx *Context) {
	s := &c.sites[site]
	switch to := s.branch.Load(); to {
	case nil:
	case ftraceCaller:
		c.through(s.ip, s.literal.Load(), ctx, 2)
	default:
		to.jump(s.ip, ctx)
	}
}

// Cost implements Way.
func (c *CallOps) Cost(site int) Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.unique(site); c.near && o != nil && o.Direct {
		return Counts{Called: 1}
	}
	return c.cost(site, 2)
}
