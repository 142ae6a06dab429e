// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// FprobeCosts are the four costs of fprobe that Florent Revest lists in "bpf: Add
// fprobe support for tracing on arm64" (RFC, 2022-11-08), each as a switch.
type FprobeCosts struct {
	AllRegs    bool // save all registers, and not only those of arguments
	ListFunc   bool // go over the list function, and not from the literal
	AlwaysHook bool // hook the return though no exit handler is called
	Freelist   bool // rethook's pool, and not the shadow stack of the task
}

// Fprobe is callbacks on entry and on return, over ordinary ops:
//
//	site -> ftrace_caller -> list or literal -> ops -> fprobe_handler -> entry handler
//	                                                    \-> pool or shadow stack
//	return -> trampoline -> node or frame -> exit handler
//
// On entry what List or [CallOps] takes and a load for the fprobe. Where the return is
// hooked a node of a pool takes two loads (the head and the node) and a
// compare-and-swap to get, and one load more and another one to give back; a frame on
// the shadow stack takes a load each way, of the task's own memory. The return saves
// the registers that may hold results, x0 to x7 and fp.
//
// Each fprobe takes a frame of its own; since Linux 6.14 those of one function share one.
// Where no node or frame is left the call is missed, which Cost does not know.
type Fprobe struct {
	Way // of the fprobes' ops, each with fprobe_handler for its function
	FprobeCosts
	base  *base
	nodes int
}

// probe is struct fprobe.
type probe struct {
	*tracers.Ops
	pool *Pool
	hook bool
}

// ReturnRegisters are saved on a hooked return: x0 to x7 and fp, return_to_handler in
// arch/arm64/kernel/entry-ftrace.S.
const ReturnRegisters = 9

// NewFprobe is an fprobe without users. Each pool has so many nodes: rethook's is as large as
// twice the functions times the possible CPUs, fprobe_init_rethook. Returns that are
// hooked keep their node or frame when an fprobe is detached.
func NewFprobe(c Config, costs FprobeCosts, nodes int) (*Fprobe, error) {
	f := &Fprobe{FprobeCosts: costs, nodes: nodes}
	if costs.ListFunc {
		l, err := NewList(c)
		if err != nil {
			return nil, err
		}
		f.Way, f.base = l, l.base
	} else {
		w, err := NewCallOps(c, false)
		if err != nil {
			return nil, err
		}
		f.Way, f.base = w, w.base
		f.base.words.direct = false
	}
	if costs.AllRegs {
		f.base.saves = AllRegisters
	}
	f.base.run = f.handler
	return f, nil
}

// hooks tells whether the return is hooked for a tracer.
func (f *Fprobe) hooks(o *tracers.Ops) bool { return f.AlwaysHook || o.Func.Exit != nil }

// handler is fprobe_handler, kernel/trace/fprobe.c, for one fprobe.
func (f *Fprobe) handler(o *tracers.Ops) func(ip records.Addr, t *Task) {
	p := &probe{Ops: o, hook: f.hooks(o)}
	if f.Freelist {
		p.pool = NewPool(f.nodes)
	}
	return func(ip records.Addr, t *Task) {
		bit, ok := t.Enter(tracers.FtraceGuard)
		if !ok {
			return
		}
		t.count(Counts{Loads: 1})
		switch {
		case p.hook && !p.push(t):
			t.Missed++
		case p.Func.Entry != nil:
			t.count(Counts{Called: 1})
			p.Func.Entry(ip, o, &t.Task)
		}
		t.Leave(bit)
	}
}

// push hooks the return; false when there is no room for it.
func (p *probe) push(t *Task) bool {
	if p.pool != nil {
		n := p.pool.get()
		if n == nil {
			return false
		}
		n.of, n.below, t.hooks = p, t.hooks, n
		t.count(Counts{Loads: 2, Atomics: 1})
		return true
	}
	if t.frames == shadowFrames {
		return false
	}
	t.shadow[t.frames] = frame{p}
	t.frames++
	t.count(Counts{Loads: 1})
	return true
}

// Call implements Way: entry, function, return.
func (f *Fprobe) Call(site int, t *Task) {
	frames, hooks := t.frames, t.hooks
	f.Way.Call(site, t)
	t.body()
	if t.frames == frames && t.hooks == hooks {
		return
	}
	t.save(ReturnRegisters)
	ip := f.base.ips[site]
	for t.frames > frames {
		t.frames--
		p := t.shadow[t.frames].of
		t.count(Counts{Loads: 1})
		p.exit(ip, t)
	}
	for t.hooks != hooks {
		n := t.hooks
		t.hooks = n.below
		t.count(Counts{Loads: 1, Atomics: 1})
		p := n.of
		p.exit(ip, t)
		p.pool.put(n)
	}
}

// exit calls the exit handler, if there is one.
func (p *probe) exit(ip records.Addr, t *Task) {
	if p.Func.Exit != nil {
		t.count(Counts{Called: 1})
		p.Func.Exit(ip, p.Ops, &t.Task)
	}
}

// Cost implements Way.
func (f *Fprobe) Cost(site int) Counts {
	c := f.Way.Cost(site)
	f.base.mu.Lock()
	defer f.base.mu.Unlock()
	saved := int64(0)
	for _, o := range f.base.core.Users(site) {
		c.Loads++
		if o.Func.Entry == nil {
			c.Called--
		}
		if o.Func.Exit != nil {
			c.Called++
		}
		switch {
		case !f.hooks(o):
			continue
		case f.Freelist:
			c.Loads, c.Atomics = c.Loads+3, c.Atomics+2
		default:
			c.Loads += 2
		}
		saved = ReturnRegisters
	}
	c.Saved += saved
	return c
}
