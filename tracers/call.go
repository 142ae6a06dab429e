package tracers

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
)

// Called is somebody who was called: an ops' function, or a direct trampoline.
type Called struct {
	Func   Func
	Ops    *Ops         // what the function was given
	Direct records.Addr // the direct trampoline, where it is one
}

// Frame is a CPU that has executed a site and goes on from there. What it has
// loaded stays what it is, whatever changes meanwhile: as long as it is not
// finished, no grace period ends.
type Frame struct {
	c     *Core
	rec   int
	epoch int
	f     Func
	op    *Ops
	tramp *tramp
	calls records.Addr // a direct trampoline
	regs  bool
}

// FreedError says that a call met something that was freed.
type FreedError struct{ What string }

func (e *FreedError) Error() string { return "call through " + e.What + ", which was freed" }

// Enter executes a site as it is and loads what it leads to: the literal's ops, the
// ops behind a trampoline, or the global pair.
func (c *Core) Enter(rec int) *Frame {
	f := &Frame{c: c, rec: rec, epoch: c.epoch, regs: !c.traits.RegsEntry}
	c.frames = append(c.frames, f)
	at := c.text[rec]
	switch to := at.Calls(c.Places.Entry); {
	case to == 0:
		f.f = FuncNone
	case to == c.Places.Entry || to == c.Places.RegsEntry:
		f.regs = f.regs || to == c.Places.RegsEntry
		if f.op = at.Literal; c.traits.CallOps {
			f.f, f.calls = f.op.Func, f.op.DirectCall
		} else {
			f.f, f.op = c.global.patched, c.global.passed
		}
	case c.tramps[to] != nil:
		f.tramp = c.tramps[to]
		f.f, f.op = f.tramp.aims, f.tramp.ops
		f.regs = f.regs || f.op.has(OpsSaveRegs)
	default:
		f.calls = to
	}
	return f
}

// Finish goes on to the end and says who was called, in order. A *FreedError
// says that what it had loaded was freed meanwhile.
func (f *Frame) Finish(g *Guard, in Context) ([]Called, error) {
	c := f.c
	for i, other := range c.frames {
		if other == f {
			c.frames = append(c.frames[:i], c.frames[i+1:]...)
			break
		}
	}
	defer c.release()
	if f.tramp != nil && f.tramp.gone {
		return nil, &FreedError{"the trampoline of ops " + f.op.Name}
	}
	if f.op != nil && f.op.alive == freed {
		return nil, &FreedError{"ops " + f.op.Name}
	}
	if f.calls != 0 {
		return []Called{{Direct: f.calls}}, nil
	}
	var out []Called
	late := records.Addr(0)
	call := func(fn Func, o *Ops) {
		switch fn {
		case FuncNone, FuncStub:
		case FuncCallDirect:
			late = c.LateTarget(o, f.rec)
		default:
			out = append(out, Called{Func: fn, Ops: o})
		}
	}
	switch f.f {
	case FuncList, FuncAssist:
		bit, ok := g.Enter(in)
		if !ok {
			return nil, nil
		}
		if f.f == FuncAssist {
			call(f.op.Func, f.op)
		} else {
			c.each(f.rec, f.regs, call)
		}
		g.Leave(bit)
	default:
		call(f.f, f.op)
	}
	if late != 0 {
		out = append(out, Called{Direct: late})
	}
	return out, nil
}

// each is the list function's walk: over all ops, newest first, and their hashes.
func (c *Core) each(rec int, regs bool, call func(Func, *Ops)) {
	for o := range c.List() {
		if !o.has(OpsStub) && o.Test(rec, regs) {
			call(o.Func, o)
		}
	}
}

// Call executes a function's site and says who was called, in order.
func (c *Core) Call(rec int) ([]Called, error) {
	return c.Enter(rec).Finish(new(Guard), Normal)
}

// departure is an ops that was detached, until nobody can be on the way to it.
type departure struct {
	ops   *Ops
	epoch int
}

// depart starts the wait that ends a detached ops, if it may be freed: both
// flavours of RCU tasks, then its trampoline goes (ftrace_shutdown).
func (x *change) depart(o *Ops) {
	c := x.c
	if !o.has(OpsDynamic) {
		x.later(func() {})
		o.alive = fresh
		return
	}
	x.TasksRude++
	x.Tasks++
	if o.has(OpsAllocTramp) {
		x.Freed++
	}
	d := &departure{o, c.epoch}
	c.epoch++
	c.leaving = append(c.leaving, d)
	x.later(func() {
		for i, other := range c.leaving {
			if other == d {
				c.leaving = append(c.leaving[:i], c.leaving[i+1:]...)
				return
			}
		}
	})
}

// release ends the grace periods that nobody holds up.
func (c *Core) release() {
	if c.change != nil {
		return
	}
	kept := c.leaving[:0]
	for _, d := range c.leaving {
		if c.busy(d.epoch) {
			kept = append(kept, d)
			continue
		}
		d.ops.alive = released
		if d.ops.has(OpsAllocTramp) {
			c.tramps[d.ops.Trampoline].gone = true
			d.ops.Trampoline = 0
			d.ops.Flags &^= OpsAllocTramp
		}
	}
	c.leaving = kept
}

// busy tells whether a call is under way that began before an ops left.
func (c *Core) busy(epoch int) bool {
	for _, f := range c.frames {
		if f.epoch <= epoch {
			return true
		}
	}
	return false
}

// Free gives an ops' memory to somebody else. It fails while a call may still be
// on its way to the ops; the kernel's Detach would not have returned yet.
func (c *Core) Free(o *Ops) error {
	if o.alive == attached || o.alive == leaving {
		return fmt.Errorf("ops %s: a call may be on its way to it", o.Name)
	}
	o.alive = freed
	return nil
}

// FreeAtOnce is the defect: an ops and its trampoline are freed without waiting.
func (c *Core) FreeAtOnce(o *Ops) {
	o.alive = freed
	if t := c.tramps[o.Trampoline]; t != nil {
		t.gone = true
	}
}
