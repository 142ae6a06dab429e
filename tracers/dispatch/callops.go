// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
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
	*base
	at []callOpsSite
}

type callOpsSite struct {
	branch  atomic.Pointer[trampoline] // the instruction: nil a nop
	literal atomic.Pointer[entry]
}

// ftraceCaller is what sites call that call no trampoline themselves.
var ftraceCaller = &trampoline{}

// NewCallOps is sites that all name nop_ops; direct trampolines are near or not.
func NewCallOps(c Config, near bool) (*CallOps, error) {
	return newCallOps(c, words{callOps: true, direct: true, near: near})
}

// NewSingleDirect has one ops for all direct trampolines, and finds a function's by its
// address: call_direct_funcs, kernel/trace/ftrace.c, x86_64 since Linux 7.0.
//
//	site -> trampoline                                             near, one user
//	site -> ftrace_caller -> literal -> ops -> hash -> bucket -> entry -> trampoline
//	site -> ftrace_caller -> list function -> ... -> hash ... -> trampoline
//
// Near, a site whose only user is a trampoline calls it without a load. Otherwise its
// address is looked up for every call: five loads and more where a literal leads to the
// ops, which is what taking direct_call out of the ops would mean for architectures with
// CALL_OPS and a short branch range.
func NewSingleDirect(c Config, near bool) (*CallOps, error) {
	return newCallOps(c, words{callOps: true, direct: true, near: near, single: true})
}

func newCallOps(c Config, w words) (*CallOps, error) {
	b, err := newBase(c, w, false)
	if err != nil {
		return nil, err
	}
	way := &CallOps{b, make([]callOpsSite, b.sites)}
	b.start(way.publish)
	return way, nil
}

// publish writes the literal before the branch: a late caller finds nop_ops.
func (c *CallOps) publish(site int, text tracers.Installed) {
	s := &c.at[site]
	s.literal.Store(c.readable(text))
	to := ftraceCaller
	switch {
	case text.Decided == 0:
		to = nil
	case c.words.near && c.direct[text.Decided] != nil:
		to = c.direct[text.Decided]
	}
	s.branch.Store(to)
}

// Call implements Way.
func (c *CallOps) Call(site int, t *Task) {
	s := &c.at[site]
	switch to := s.branch.Load(); to {
	case nil:
	case ftraceCaller:
		c.through(c.ips[site], s.literal.Load(), t, 2)
	default:
		to.jump(c.ips[site], t)
	}
}

// Cost implements Way.
func (c *CallOps) Cost(site int) Counts { return c.cost(site, 2) }

// literals are designs that were turned down: what a site's literal leads to is found in another way.
type literals struct {
	*base
	calls  []atomic.Bool // the sites' instructions: calls, or nops
	loads  int64         // to the ops
	direct int64         // to a direct trampoline
	call   func(site int, t *Task)
}

// newLiterals is sites that all lead to nop_ops. publish stores what a site's literal leads to.
func newLiterals(c Config, loads, direct int64, publish func(w *literals, site int, e *entry)) (*literals, error) {
	b, err := newBase(c, words{callOps: true, direct: true}, false)
	if err != nil {
		return nil, err
	}
	w := &literals{base: b, calls: make([]atomic.Bool, b.sites), loads: loads, direct: direct}
	b.start(func(site int, to tracers.Installed) {
		publish(w, site, b.readable(to))
		w.calls[site].Store(to.Decided != 0)
	})
	return w, nil
}

// Call implements Way.
func (w *literals) Call(site int, t *Task) {
	if w.calls[site].Load() {
		w.call(site, t)
	}
}

// Cost implements Way.
func (w *literals) Cost(site int) Counts {
	c := w.cost(site, w.loads)
	if c.Called == 1 && c.Saved == 0 {
		c.Loads = w.direct
	}
	return c
}

// newIntermediate: the literal names a structure of the site, such as its record, and that names
// the ops.
//
//	site -> ftrace_caller -> literal -> record -> ops -> func
//
// Three loads, one more than with the ops at the site. The record's other fields are read apart
// from the pointer to the ops, so that both have to be synchronised whenever they change.
func newIntermediate(c Config) (*literals, error) {
	records := make([]struct{ ops atomic.Pointer[entry] }, len(c.Sites)) // struct dyn_ftrace with a pointer to the ops
	w, err := newLiterals(c, 3, 3, func(_ *literals, site int, e *entry) { records[site].ops.Store(e) })
	if err == nil {
		w.call = func(site int, t *Task) { w.through(w.ips[site], records[site].ops.Load(), t, 3) }
	}
	return w, err
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
func newOpsTrampoline(c Config) (*literals, error) {
	at := make([]atomic.Pointer[opsTrampoline], len(c.Sites))
	w, err := newLiterals(c, 1, 1, func(w *literals, site int, e *entry) { at[site].Store(e.trampoline(w.base)) })
	if err == nil {
		w.call = func(site int, t *Task) { at[site].Load().run(w.ips[site], t) }
	}
	return w, err
}

// opsTrampoline is code: run has its ops as an immediate.
type opsTrampoline struct {
	run func(ip records.Addr, t *Task)
}

// trampoline generates the code for an ops, once.
func (e *entry) trampoline(b *base) *opsTrampoline {
	if e.code == nil {
		e.code = &opsTrampoline{func(ip records.Addr, t *Task) { b.through(ip, e, t, 1) }}
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
func newSiteTrampoline(c Config) (*literals, error) {
	at := make([]struct {
		direct atomic.Pointer[trampoline]
		ops    atomic.Pointer[entry]
	}, len(c.Sites))
	w, err := newLiterals(c, 2, 1, func(_ *literals, site int, e *entry) {
		at[site].ops.Store(e)
		at[site].direct.Store(e.direct)
	})
	if err == nil {
		w.call = func(site int, t *Task) {
			if tr := at[site].direct.Load(); tr != nil {
				t.count(Counts{Loads: 1})
				tr.jump(w.ips[site], t)
				return
			}
			w.through(w.ips[site], at[site].ops.Load(), t, 2)
		}
	}
	return w, err
}
