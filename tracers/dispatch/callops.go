// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// callOps is a literal at each site that names its ops: arm64 since Linux 6.3
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
//
// With a single ops for all direct trampolines (x86_64 since Linux 7.0), a function's is found by
// its address: call_direct_funcs, kernel/trace/ftrace.c.
//
//	site -> trampoline                                             near, one user
//	site -> ftrace_caller -> literal -> ops -> hash -> bucket -> entry -> trampoline
//	site -> ftrace_caller -> list function -> ... -> hash ... -> trampoline
//
// Then a site whose only user is a trampoline out of reach looks its address up for every call: five
// loads and more where a literal leads to the ops, which is what taking direct_call out of the ops
// would mean for architectures with CALL_OPS and a short branch range.
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

// newLiterals is a design that was turned down: what a site's literal leads to is found in another
// way. publish stores that, at first nop_ops.
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
