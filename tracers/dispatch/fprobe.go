// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"sync/atomic"

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

// probe is struct fprobe.
type probe struct {
	*tracers.Ops
	pool *pool
	hook bool
}

// ReturnRegisters are saved on a hooked return: x0 to x7 and fp, return_to_handler in
// arch/arm64/kernel/entry-ftrace.S.
const ReturnRegisters = 9

// NewFprobe is callbacks on entry and on return, over ordinary ops:
//
//	site -> ftrace_caller -> list or literal -> ops -> fprobe_handler -> entry handler
//	                                                    \-> pool or shadow stack
//	return -> trampoline -> node or frame -> exit handler
//
// On entry what the list or call-ops takes and a load for the fprobe. Where the return is
// hooked a node of a pool takes two loads (the head and the node) and a
// compare-and-swap to get, and one load more and another one to give back; a frame on
// the shadow stack takes a load each way, of the task's own memory. The return saves
// the registers that may hold results, x0 to x7 and fp.
//
// Each fprobe takes a frame of its own; since Linux 6.14 those of one function share one.
// Where no node or frame is left the call is missed.
//
// Each pool has so many nodes: rethook's is as large as twice the functions times the possible CPUs,
// fprobe_init_rethook. Returns that are hooked keep their node or frame when an fprobe is detached.
func NewFprobe(c Config, costs FprobeCosts, nodes int) (w *Way, err error) {
	if costs.ListFunc {
		w, err = newList(c)
	} else {
		w, err = newCallOps(c, false, false)
	}
	if err != nil {
		return nil, err
	}
	if w.words.direct = false; costs.AllRegs {
		w.saves = AllRegisters
	}
	w.run = func(o *tracers.Ops) func(ip records.Addr, t *Task) {
		p := &probe{Ops: o, hook: costs.hooks(o)}
		if costs.Freelist {
			p.pool = newPool(nodes)
		}
		return p.handle
	}
	enter := w.path
	w.returns, w.path = true, func(site int, t *Task) {
		frames, hooks := t.frames, t.hooks
		enter(site, t)
		t.body()
		t.unwind(w.ips[site], frames, hooks)
	}
	return w, nil
}

// hooks tells whether the return is hooked for a tracer.
func (f FprobeCosts) hooks(o *tracers.Ops) bool { return f.AlwaysHook || o.Func.Exit != nil }

// handle is fprobe_handler, kernel/trace/fprobe.c.
func (p *probe) handle(ip records.Addr, t *Task) {
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
		p.Func.Entry(ip, p.Ops, &t.Task)
	}
	t.Leave(bit)
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

// unwind returns through what was hooked since.
func (t *Task) unwind(ip records.Addr, frames int, hooks *node) {
	if t.frames == frames && t.hooks == hooks {
		return
	}
	t.save(ReturnRegisters)
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

// node is struct rethook_node: what a hooked return needs.
type node struct {
	index uint32
	next  atomic.Uint32 // in the pool: index of the next free node plus 1
	below *node         // in the task: the return that was hooked before
	frame
}

// pool is rethook's: nodes that are taken at a function's entry and given back at its
// return, by whichever CPU, from one list without a lock. include/linux/freelist.h
// (Linux 5.18 to 6.6) keeps a count in each node so that one that comes back is not
// taken for the one that left; here a running number goes with the head.
type pool struct {
	nodes []node
	head  atomic.Uint64 // running number and index of the first free node plus 1
}

// newPool has so many nodes.
func newPool(n int) *pool {
	p := &pool{nodes: make([]node, n)}
	for i := range p.nodes {
		p.nodes[i].index = uint32(i)
		p.put(&p.nodes[i])
	}
	return p
}

// get takes a node, nil if none is left.
func (p *pool) get() *node {
	for {
		was := p.head.Load()
		if uint32(was) == 0 {
			return nil
		}
		n := &p.nodes[uint32(was)-1]
		if p.head.CompareAndSwap(was, (was>>32+1)<<32|uint64(n.next.Load())) {
			return n
		}
	}
}

// put gives a node back.
func (p *pool) put(n *node) {
	for {
		was := p.head.Load()
		n.next.Store(uint32(was))
		if p.head.CompareAndSwap(was, (was>>32+1)<<32|uint64(n.index+1)) {
			return
		}
	}
}

// frame is one hooked return on a task's shadow stack.
type frame struct{ of *probe }

// shadowFrames is how many returns a task can have hooked on x86_64 where users reserve no
// data (ftrace_push_return_trace and SHADOW_STACK_MAX_OFFSET, kernel/trace/fgraph.c, Linux
// 7.2.13): of the 512 words of a stack a frame takes 4, three of struct ftrace_ret_stack and
// one that leads back to it, and the last frame leaves 16 words and a frame free. arm64 and
// riscv64, whose frames have 5 words, have room for 98.
const shadowFrames = (512-(3+1+16)-(3+1)-1)/4 + 1
