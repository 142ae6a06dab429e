package dispatch

import (
	"fmt"
	"sync"

	"github.com/textpoke/textpoke/records"
)

// FprobeCosts are the four costs of fprobe that Florent Revest lists in "bpf: Add
// fprobe support for tracing on arm64" (RFC, 2022-11-08), each as a switch.
type FprobeCosts struct {
	AllRegs    bool // save all registers, and not only those of arguments
	ListFunc   bool // go over the list function, and not from the literal
	AlwaysHook bool // hook the return though nobody is called there
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
	costs FprobeCosts
	inner Way
	guard Guard
	nodes int
	mu    sync.Mutex // fprobe_mutex; comes before the inner way's
	probe map[*Ops]*probe
	ips   []records.Addr
}

// probe is struct fprobe.
type probe struct {
	of   *Ops
	ops  Ops
	pool *Pool
	hook bool
}

// ReturnRegisters are saved on a hooked return: x0 to x7 and fp, return_to_handler in
// arch/arm64/kernel/entry-ftrace.S.
const ReturnRegisters = 9

// NewFprobe has nobody attached. Each pool has so many nodes: rethook's is as large as
// twice the functions times the possible CPUs, fprobe_init_rethook.
func NewFprobe(sites []records.Addr, costs FprobeCosts, nodes int) *Fprobe {
	f := &Fprobe{costs: costs, guard: Transition, nodes: nodes, probe: map[*Ops]*probe{}, ips: sites}
	saves := ArgRegisters
	if costs.AllRegs {
		saves = AllRegisters
	}
	if costs.ListFunc {
		l := NewList(sites, Transition)
		l.saves, f.inner = saves, l
		return f
	}
	c := NewCallOps(sites, Transition, false)
	c.saves, f.inner = saves, c
	return f
}

// Attach implements Way.
func (f *Fprobe) Attach(o *Ops) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.probe[o] != nil {
		return fmt.Errorf("attach: %w", ErrBusy)
	}
	p := &probe{of: o, hook: f.costs.AlwaysHook || o.Exit != nil}
	p.ops.Filter = o.Filter
	p.ops.Func = func(ip records.Addr, _ *Ops, ctx *Context) { f.enter(ip, p, ctx) }
	if f.costs.Freelist {
		p.pool = NewPool(f.nodes)
	}
	if err := f.inner.Attach(&p.ops); err != nil {
		return err
	}
	f.probe[o] = p
	return nil
}

// Detach implements Way. Returns that are hooked keep their node or frame.
func (f *Fprobe) Detach(o *Ops) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.probe[o]
	if p == nil {
		return fmt.Errorf("detach: %w", ErrAbsent)
	}
	delete(f.probe, o)
	return f.inner.Detach(&p.ops)
}

// enter is fprobe_handler, kernel/trace/fprobe.c.
func (f *Fprobe) enter(ip records.Addr, p *probe, ctx *Context) {
	bit, ok := f.guard.enter(ctx, ownBits)
	if !ok {
		return
	}
	if c := ctx.counts; c != nil {
		c.Loads++
	}
	if p.hook && !p.push(ctx) {
		ctx.Missed++
	} else {
		p.of.Func(ip, p.of, ctx)
	}
	f.guard.leave(ctx, bit)
}

// push hooks the return; false when there is no room for it.
func (p *probe) push(ctx *Context) bool {
	var cost Counts
	if p.pool != nil {
		n := p.pool.get()
		if n == nil {
			return false
		}
		n.of, n.below, ctx.hooks = p, ctx.hooks, n
		cost = Counts{Loads: 2, Atomics: 1}
	} else {
		if ctx.frames == shadowFrames {
			return false
		}
		ctx.shadow[ctx.frames] = frame{p}
		ctx.frames++
		cost = Counts{Loads: 1}
	}
	if c := ctx.counts; c != nil {
		*c = c.Add(cost)
	}
	return true
}

// Call implements Way: entry, function, return.
func (f *Fprobe) Call(site int, ctx *Context) {
	frames, hooks := ctx.frames, ctx.hooks
	f.inner.Call(site, ctx)
	ctx.body()
	if ctx.frames == frames && ctx.hooks == hooks {
		return
	}
	ctx.save(ReturnRegisters)
	ip := f.ips[site]
	for ctx.frames > frames {
		ctx.frames--
		p := ctx.shadow[ctx.frames].of
		if c := ctx.counts; c != nil {
			c.Loads++
		}
		p.exit(ip, ctx)
	}
	for ctx.hooks != hooks {
		n := ctx.hooks
		ctx.hooks = n.below
		if c := ctx.counts; c != nil {
			c.Loads++
			c.Atomics++
		}
		p := n.of
		p.exit(ip, ctx)
		p.pool.put(n)
	}
}

// exit calls the exit handler, if there is one.
func (p *probe) exit(ip records.Addr, ctx *Context) {
	if p.of.Exit == nil {
		return
	}
	if c := ctx.counts; c != nil {
		c.Called++
	}
	p.of.Exit(ip, p.of, ctx)
}

// Cost implements Way.
func (f *Fprobe) Cost(site int) Counts {
	c := f.inner.Cost(site)
	f.mu.Lock()
	defer f.mu.Unlock()
	hooked := false
	for _, p := range f.probe {
		if !p.of.matches(f.ips[site]) {
			continue
		}
		c.Loads++
		if p.of.Exit != nil {
			c.Called++
		}
		if !p.hook {
			continue
		}
		hooked = true
		if p.pool != nil {
			c.Loads, c.Atomics = c.Loads+3, c.Atomics+2
		} else {
			c.Loads += 2
		}
	}
	if hooked {
		c.Saved += ReturnRegisters
	}
	return c
}
