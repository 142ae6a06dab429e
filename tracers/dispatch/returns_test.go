package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers/metadata"
)

// told is a tracer that writes down when it is called.
func told(log *[]string, name string) *Ops {
	say := func(what string) Func {
		return func(records.Addr, *Ops, *Context) { *log = append(*log, what+name) }
	}
	return &Ops{Func: say("enter "), Exit: say("exit ")}
}

// TestReturns: handlers run before and after the function, and those of one that was not
// to run did not.
func TestReturns(t *testing.T) {
	for _, w := range []Way{
		NewFprobe([]records.Addr{tracee}, FprobeCosts{}, 4),
		NewFprobe([]records.Addr{tracee}, FprobeCosts{ListFunc: true, Freelist: true}, 4),
		NewBPF([]records.Addr{tracee}, 3),
		NewGlobalTrampoline([]records.Addr{tracee}, func(int) int { return 3 }, metadata.NewResizable()),
	} {
		var log []string
		for _, name := range []string{"a", "b"} {
			if err := w.Attach(told(&log, name)); err != nil {
				t.Fatal(err)
			}
		}
		ctx := NewContext()
		var c Counts
		ctx.Count(&c)
		ctx.Body = func() { log = append(log, "body") }
		w.Call(0, ctx)
		exits := []string{"exit b", "exit a"} // a program's image has them in its own order
		if _, frames := w.(*Fprobe); frames {
			slices.Reverse(exits) // what was hooked last is left first
		}
		want := strings.Join(append([]string{"enter b", "enter a", "body"}, exits...), ", ")
		if got := strings.Join(log, ", "); got != want {
			t.Errorf("%T: %s, want %s", w, got, want)
		}
		if c != w.Cost(0) || c.Called != 4 {
			t.Errorf("%T: counted %+v, computed %+v", w, c, w.Cost(0))
		}
		if ctx.frames != 0 || ctx.hooks != nil {
			t.Errorf("%T: hooks are left", w)
		}
	}
}

func TestModifyReturn(t *testing.T) {
	for _, w := range []Way{
		NewBPF([]records.Addr{tracee}, 3),
		NewGlobalTrampoline([]records.Addr{tracee}, func(int) int { return 3 }, metadata.NewResizable()),
	} {
		answer, ran := uint64(0), 0
		o := &Ops{Func: Hit, Exit: Hit, Modify: func(records.Addr, *Context) uint64 { return answer }}
		if err := w.Attach(o); err != nil {
			t.Fatal(err)
		}
		ctx := NewContext()
		ctx.Body = func() { ran++ }
		var c Counts
		ctx.Count(&c)
		w.Call(0, ctx)
		if ran != 1 || ctx.Hits != 2 || c != w.Cost(0) || c.Called != 3 || c.Saved != 3+1 {
			t.Errorf("%T: the body ran %d times, %d hits, counted %+v", w, ran, ctx.Hits, c)
		}
		answer = 22
		if w.Call(0, ctx); ran != 1 || ctx.Hits != 4 {
			t.Errorf("%T: the body ran though fmod_ret answered", w)
		}
	}
}

// TestFprobeCosts: what each switch costs alone, and with an exit handler.
func TestFprobeCosts(t *testing.T) {
	cost := func(costs FprobeCosts, exit Func) Counts {
		w := NewFprobe([]records.Addr{tracee}, costs, 4)
		if err := w.Attach(&Ops{Func: Hit, Exit: exit, Filter: NewHash(tracee)}); err != nil {
			t.Fatal(err)
		}
		c, _ := counted(w, 0, 1)
		if c != w.Cost(0) {
			t.Errorf("%+v: counted %+v, computed %+v", costs, c, w.Cost(0))
		}
		return c
	}
	base := Counts{Loads: 2 + 1, Called: 1, Saved: ArgRegisters}
	for _, tt := range []struct {
		costs FprobeCosts
		exit  Func
		more  Counts
	}{
		{FprobeCosts{}, nil, Counts{}},
		{FprobeCosts{Freelist: true}, nil, Counts{}}, // nothing to take from it
		{FprobeCosts{AllRegs: true}, nil, Counts{Saved: AllRegisters - ArgRegisters}},
		{FprobeCosts{ListFunc: true}, nil, Counts{Loads: 1 + 1 + 3 - 2, Hashes: 1, Walked: 1}},
		{FprobeCosts{AlwaysHook: true}, nil, Counts{Loads: 2, Saved: ReturnRegisters}},
		{FprobeCosts{AlwaysHook: true, Freelist: true}, nil, Counts{Loads: 3, Atomics: 2, Saved: ReturnRegisters}},
		{FprobeCosts{}, Hit, Counts{Loads: 2, Called: 1, Saved: ReturnRegisters}},
	} {
		if got, want := cost(tt.costs, tt.exit), base.Add(tt.more); got != want {
			t.Errorf("%+v, exit %v: %+v, want %+v", tt.costs, tt.exit != nil, got, want)
		}
	}
}

// TestNoRoom: a function that calls itself deeper than there are nodes or frames is
// missed from there on, and everything is given back.
func TestNoRoom(t *testing.T) {
	for freelist, room := range map[bool]uint64{true: 4, false: shadowFrames} {
		w := NewFprobe([]records.Addr{tracee}, FprobeCosts{Freelist: freelist}, 4)
		if err := w.Attach(&Ops{Func: Hit, Exit: Hit}); err != nil {
			t.Fatal(err)
		}
		ctx := NewContext()
		deep := room + 3
		ctx.Body = func() {
			if deep--; deep > 0 {
				w.Call(0, ctx)
			}
		}
		w.Call(0, ctx)
		if ctx.Hits != 2*room || ctx.Missed != 3 {
			t.Errorf("freelist %v: %d hits, %d missed", freelist, ctx.Hits, ctx.Missed)
		}
		deep = room
		if w.Call(0, ctx); ctx.Hits != 4*room || ctx.Missed != 3 {
			t.Errorf("freelist %v: not everything was given back: %d hits", freelist, ctx.Hits)
		}
	}
}

// TestKprobe: exceptions, and a probe that is hit while one is handled.
func TestKprobe(t *testing.T) {
	for boosted, traps := range map[bool]int64{true: 1, false: 2} {
		k := NewKprobe([]records.Addr{tracee}, boosted)
		err := k.Attach(&Ops{Func: func(_ records.Addr, _ *Ops, ctx *Context) {
			ctx.Hits++
			k.Call(0, ctx)
		}})
		if err != nil {
			t.Fatal(err)
		}
		c, ctx := counted(k, 0, 1)
		if c.Traps != 2*traps || c.Saved != 2*traps*AllRegisters || ctx.Hits != 1 || ctx.Missed != 1 {
			t.Errorf("boosted %v: %+v, %d hits, %d missed", boosted, c, ctx.Hits, ctx.Missed)
		}
	}
}

// TestDirectIsAlone: a second direct trampoline is refused, and leaves no trace.
func TestDirectIsAlone(t *testing.T) {
	for _, k := range Kinds() {
		if !k.Direct {
			continue
		}
		w := sample(t, k, 1, 0)
		before := w.Cost(0)
		if err := w.Attach(&Ops{Func: Hit, Direct: true}); !errors.Is(err, ErrBusy) || w.Cost(0) != before {
			t.Errorf("%s: %v, cost %+v", k.Name, err, w.Cost(0))
		}
	}
	for _, k := range Kinds() {
		w := k.New([]records.Addr{tracee})
		o := &Ops{Func: Hit}
		if err := w.Detach(o); !errors.Is(err, ErrAbsent) {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := errors.Join(w.Attach(o), nil); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := w.Attach(o); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: attached twice: %v", k.Name, fmt.Sprint(err))
		}
	}
}
