// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
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

// node is struct rethook_node, for one hooked return.
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

// kprobes is a breakpoint at the site, and a table of probes by address:
//
//	site -> breakpoint -> exception -> bucket -> kprobe ... -> handlers
//	  then the copied instruction: jumped to (boosted), or stepped -> exception
//
// A lookup in a hash that is there from the start: a load for the bucket, and one for each
// probe in it up to the one that is meant; then one for every handler, as several at one
// address are a list (aggr_pre_handler).
// Exceptions are one, or two where the instruction has to be single-stepped, and each
// saves all registers. kernel/kprobes.c; kprobe_table has 64 buckets.
//
// Exceptions are counted here and not taken: the time of a call is that of the rest.
type kprobes struct {
	*Way
	boosted bool
	table   [kprobeBuckets]atomic.Pointer[kprobe]
}

// kprobe is all probes at one address.
type kprobe struct {
	ip       records.Addr
	handlers []*entry // the newest first: list_add_rcu in add_new_kprobe
	next     *kprobe
}

// kprobeBits is KPROBE_HASH_BITS, kernel/kprobes.c.
const (
	kprobeBits    = 6
	kprobeBuckets = 1 << kprobeBits
)

// newKprobe has no probes.
func newKprobe(c Config, boosted bool) (*Way, error) {
	w, err := newWay(c, words{}, false)
	if err != nil {
		return nil, err
	}
	k := &kprobes{Way: w, boosted: boosted}
	w.users, w.path = k.publish, k.call
	return w, nil
}

// kprobeKey is hash_ptr, include/linux/hash.h.
func kprobeKey(ip records.Addr) uint64 { return uint64(ip) * goldenRatio >> (64 - kprobeBits) }

// handlers are what the users of a site call, the newest first.
func (k *kprobes) handlers(site int) (out []*entry) {
	for _, o := range slices.Backward(k.core.Users(site)) {
		if e := k.entries[o]; e.run != nil {
			out = append(out, e)
		}
	}
	return out
}

// publish builds the buckets of some sites anew. A probe is in the table while there is
// a breakpoint.
func (k *kprobes) publish(sites []int) error {
	dirty, heads := map[uint64]bool{}, map[uint64]*kprobe{}
	for _, site := range sites {
		dirty[kprobeKey(k.ips[site])] = true
		if len(k.core.Users(site)) == 0 {
			k.calls[site].Store(false)
		}
	}
	for site, ip := range k.ips[:k.sites] {
		if key := kprobeKey(ip); dirty[key] && len(k.core.Users(site)) > 0 {
			heads[key] = &kprobe{ip, k.handlers(site), heads[key]}
		}
	}
	for key := range dirty {
		k.table[key].Store(heads[key])
	}
	for _, site := range sites {
		k.calls[site].Store(len(k.core.Users(site)) > 0)
	}
	return nil
}

// call is missed where the probe is hit while one is handled: kprobe_running.
func (k *kprobes) call(site int, t *Task) {
	t.save(AllRegisters)
	ip := k.ips[site]
	loads := int64(1)
	p := k.table[kprobeKey(ip)].Load()
	for ; p != nil; p = p.next {
		loads++
		if p.ip == ip {
			break
		}
	}
	if c := t.counts; c != nil {
		c.Loads += loads
		c.Hashes++
		c.Traps++
	}
	if p != nil {
		k.handle(p, t)
	}
	if !k.boosted {
		t.save(AllRegisters)
		if c := t.counts; c != nil {
			c.Traps++
		}
	}
}

// handle calls the handlers of a probe.
func (k *kprobes) handle(p *kprobe, t *Task) {
	if t.probing {
		t.Missed++
		return
	}
	t.probing = true
	for _, e := range p.handlers {
		e.run(p.ip, t)
	}
	t.probing = false
	n := int64(len(p.handlers))
	t.count(Counts{Loads: n, Walked: n})
}
