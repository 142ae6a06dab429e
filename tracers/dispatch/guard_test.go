package dispatch

import (
	"testing"

	"github.com/textpoke/textpoke/records"
)

// TestRecursion: tracers that call what they trace. With the guard of the kernel the
// callback runs once more, since that call may be an interrupt's that is not known to be
// one yet; without the transition bit once; without any guard until the stack ends.
func TestRecursion(t *testing.T) {
	power := func(n uint64, k int) uint64 {
		p := uint64(1)
		for range k {
			p *= n
		}
		return p
	}
	for _, tt := range []struct {
		guard                    Guard
		tracers                  uint64
		hits, missed, overflowed uint64
	}{
		{Transition, 1, 2, 1, 0},
		{Levels, 1, 1, 1, 0},
		{Unguarded, 1, maxDepth, 0, 1},
		{Transition, 3, 3 + power(3, 2), power(3, 2), 0},
		{Levels, 3, 3, 3, 0},
	} {
		l := NewList([]records.Addr{tracee}, tt.guard)
		for range tt.tracers {
			err := l.Attach(&Ops{Filter: NewHash(tracee), Func: func(_ records.Addr, _ *Ops, ctx *Context) {
				ctx.Hits++
				l.Call(0, ctx)
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx := NewContext()
		l.Call(0, ctx)
		if ctx.Hits != tt.hits || ctx.Missed != tt.missed || ctx.Overflowed != tt.overflowed {
			t.Errorf("guard %d, %d tracers: %d hits, %d missed, %d overflowed; want %+v", tt.guard, tt.tracers, ctx.Hits, ctx.Missed, ctx.Overflowed, tt)
		}
		if ctx.recursion != 0 || ctx.depth != 0 {
			t.Errorf("guard %d: bits %b and depth %d are left", tt.guard, ctx.recursion, ctx.depth)
		}
	}
}

// TestInterruptInsideCallback: what an interrupt calls inside a callback is traced, once
// the CPU knows that it is in one, and with the transition bit before that too.
func TestInterruptInsideCallback(t *testing.T) {
	for _, tt := range []struct {
		guard        Guard
		level        Level // what the CPU believes while the interrupt's first call is made
		hits, missed uint64
	}{
		{Transition, IRQ, 2, 0}, {Levels, IRQ, 2, 0},
		{Transition, Task, 2, 0}, {Levels, Task, 1, 1},
	} {
		l := NewList([]records.Addr{tracee}, tt.guard)
		err := l.Attach(&Ops{Func: func(_ records.Addr, _ *Ops, ctx *Context) {
			if ctx.Hits++; ctx.Hits == 1 {
				was := ctx.Level
				ctx.Level = tt.level
				l.Call(0, ctx)
				ctx.Level = was
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := NewContext()
		l.Call(0, ctx)
		if ctx.Hits != tt.hits || ctx.Missed != tt.missed {
			t.Errorf("%+v: %d hits, %d missed", tt, ctx.Hits, ctx.Missed)
		}
	}
}

// TestAssist: with a literal a tracer that relies on the guard takes the list, where it
// is, though it is alone.
func TestAssist(t *testing.T) {
	for _, assist := range []bool{true, false} {
		c := NewCallOps([]records.Addr{tracee}, Transition, false)
		depth := 0
		err := c.Attach(&Ops{Assist: assist, Func: func(_ records.Addr, _ *Ops, ctx *Context) {
			if depth++; depth < 9 {
				c.Call(0, ctx)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		c.Call(0, NewContext())
		if want := map[bool]int{true: 2, false: 9}[assist]; depth != want {
			t.Errorf("assist %v: called %d times, want %d", assist, depth, want)
		}
	}
}

// TestMismatch: a task that has read the ops and goes on once another tracer is the only
// one calls that one's function with the first one's ops, and counts it.
func TestMismatch(t *testing.T) {
	g := NewGlobal([]records.Addr{tracee}, Transition)
	var with []*Ops
	tracer := func() *Ops { return &Ops{Func: func(_ records.Addr, o *Ops, _ *Context) { with = append(with, o) }} }
	a, b := tracer(), tracer()
	for _, err := range []error{g.Attach(a), g.Detach(a), g.Attach(b)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := NewContext()
	if g.Call(0, ctx); ctx.Mismatched != 0 || len(with) != 1 || with[0] != b {
		t.Fatalf("%d mismatched, called with %v", ctx.Mismatched, with)
	}
	g.ops.Store(a) // as it was read before
	if g.Call(0, ctx); ctx.Mismatched != 1 || with[1] != a {
		t.Errorf("%d mismatched", ctx.Mismatched)
	}
}
