// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// told is a tracer that writes down when it is called.
func told(log *[]string, name string) *tracers.Ops {
	say := func(what string) func(records.Addr, *tracers.Ops, *tracers.Task) {
		return func(records.Addr, *tracers.Ops, *tracers.Task) { *log = append(*log, what+name) }
	}
	return tracers.NewOps(name, &tracers.Func{Name: name, Entry: say("enter "), Exit: say("exit ")}, 0)
}

// one is a configuration with one site.
var one = Config{Sites: []records.Addr{tracee}}

// must is a way that can be made.
func must(w *Way, err error) *Way {
	if err != nil {
		panic(err)
	}
	return w
}

// TestReturns: handlers run before and after the function, and those of one that was not
// to run did not.
func TestReturns(t *testing.T) {
	listed := FprobeCosts{ListFunc: true, Freelist: true}
	pooled := func(w *Way, site int) Counts { return fprobeCost(w, site, listed) }
	for _, tt := range []struct {
		name string
		way  *Way
		cost func(w *Way, site int) Counts
	}{
		{"fprobe", sole(t, kindOf(t, "fprobe")), kindOf(t, "fprobe").cost},
		{"fprobe of a list", must(NewFprobe(one, listed, 4)), pooled},
		{"bpf", sole(t, kindOf(t, "bpf")), kindOf(t, "bpf").cost},
		{"global-trampoline", sole(t, kindOf(t, "global-trampoline")), kindOf(t, "global-trampoline").cost},
	} {
		var log []string
		for _, name := range []string{"a", "b"} {
			if err := tt.way.Attach(told(&log, name)); err != nil {
				t.Fatal(err)
			}
		}
		ctx := &Task{}
		var c Counts
		ctx.Count(&c)
		ctx.Body = func() { log = append(log, "body") }
		tt.way.Call(0, ctx)
		exits := []string{"exit b", "exit a"} // a program's image has them in its own order
		if strings.HasPrefix(tt.name, "fprobe") {
			slices.Reverse(exits) // what was hooked last is left first
		}
		want := strings.Join(append([]string{"enter b", "enter a", "body"}, exits...), ", ")
		if got := strings.Join(log, ", "); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
		if want := tt.cost(tt.way, 0); c != want || c.Called != 4 {
			t.Errorf("%s: counted %+v, computed %+v", tt.name, c, want)
		}
		if ctx.frames != 0 || ctx.hooks != nil {
			t.Errorf("%s: hooks are left", tt.name)
		}
	}
}

// TestBody: the function runs once on each way, whether a tracer is attached or not.
func TestBody(t *testing.T) {
	for _, k := range kinds {
		for _, relevant := range []int{0, 1, 3} {
			ran, w := 0, sample(t, k, relevant, 0)
			if w.Call(0, &Task{Body: func() { ran++ }}); ran != 1 {
				t.Errorf("%s with %d: the function ran %d times", k.Name, relevant, ran)
			}
		}
	}
}

func TestModifyReturn(t *testing.T) {
	for _, name := range []string{"bpf", "global-trampoline"} {
		k := kindOf(t, name)
		w := sole(t, k)
		answer, ran := uint64(0), 0
		o := tracers.NewOps("program", &tracers.Func{Entry: tracers.Hit, Exit: tracers.Hit, Modify: func(records.Addr,
			*tracers.Ops, *tracers.Task) uint64 {
			return answer
		}}, 0)
		if err := w.Attach(o); err != nil {
			t.Fatal(err)
		}
		ctx := &Task{}
		ctx.Body = func() { ran++ }
		var c Counts
		ctx.Count(&c)
		w.Call(0, ctx)
		if ran != 1 || ctx.Hits != 2 || c != k.cost(w, 0) || c.Called != 3 || c.Saved != bpfArgs+1 {
			t.Errorf("%s: the body ran %d times, %d hits, counted %+v", name, ran, ctx.Hits, c)
		}
		answer = 22
		if w.Call(0, ctx); ran != 1 || ctx.Hits != 4 {
			t.Errorf("%s: the body ran though fmod_ret answered", name)
		}
	}
}

// TestFprobeCosts: what each switch costs alone, and with an exit handler.
func TestFprobeCosts(t *testing.T) {
	hit := tracers.Hit
	cost := func(costs FprobeCosts, exit func(records.Addr, *tracers.Ops, *tracers.Task)) Counts {
		w := must(NewFprobe(one, costs, 4))
		if err := w.Attach(tracers.NewOps("program", &tracers.Func{Entry: hit, Exit: exit}, 0, 0)); err != nil {
			t.Fatal(err)
		}
		c, _ := counted(w, 0, 1)
		if want := fprobeCost(w, 0, costs); c != want {
			t.Errorf("%+v: counted %+v, computed %+v", costs, c, want)
		}
		return c
	}
	base := Counts{Loads: 2 + 1, Called: 1, Saved: ArgRegisters}
	for _, tt := range []struct {
		costs FprobeCosts
		exit  func(records.Addr, *tracers.Ops, *tracers.Task)
		more  Counts
	}{
		{FprobeCosts{}, nil, Counts{}},
		{FprobeCosts{Freelist: true}, nil, Counts{}}, // nothing to take from it
		{FprobeCosts{AllRegs: true}, nil, Counts{Saved: AllRegisters - ArgRegisters}},
		{FprobeCosts{ListFunc: true}, nil, Counts{Loads: 1 + 1 + 3 - 2, Hashes: 1, Walked: 1}},
		{FprobeCosts{AlwaysHook: true}, nil, Counts{Loads: 2, Saved: ReturnRegisters}},
		{FprobeCosts{AlwaysHook: true, Freelist: true}, nil, Counts{Loads: 3, Atomics: 2, Saved: ReturnRegisters}},
		{FprobeCosts{}, hit, Counts{Loads: 2, Called: 1, Saved: ReturnRegisters}},
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
		w := must(NewFprobe(one, FprobeCosts{Freelist: freelist}, 4))
		if err := w.Attach(tracers.NewOps("program", &tracers.Func{Entry: tracers.Hit, Exit: tracers.Hit},
			0)); err != nil {
			t.Fatal(err)
		}
		ctx := &Task{}
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
		k := must(newKprobe(one, boosted))
		var c Counts
		task := &Task{}
		task.Count(&c)
		err := k.Attach(tracers.NewOps("probe", &tracers.Func{Entry: func(_ records.Addr, _ *tracers.Ops,
			t *tracers.Task) {
			t.Hits++
			k.Call(0, task)
		}}, 0))
		if err != nil {
			t.Fatal(err)
		}
		k.Call(0, task)
		if c.Traps != 2*traps || c.Saved != 2*traps*AllRegisters || task.Hits != 1 || task.Missed != 1 {
			t.Errorf("boosted %v: %+v, %d hits, %d missed", boosted, c, task.Hits, task.Missed)
		}
	}
}

// TestRefused: what is refused leaves no trace.
func TestRefused(t *testing.T) {
	for _, k := range kinds {
		direct := tracers.NewOps("direct", nil, 0)
		direct.Direct = tracers.CountHits
		w, busy := sample(t, k, 1, 0), tracers.EOPNOTSUPP
		if k.Direct {
			busy = tracers.EBUSY
		}
		if strings.HasPrefix(k.Name, "single") {
			busy = tracers.EINVAL // update_ftrace_direct_add
		}
		before := k.cost(w, 0)
		err := w.Attach(direct)
		if w.words.direct && !k.Direct { // beside a callback, which is there
			if err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		} else if !errors.Is(err, busy) || k.cost(w, 0) != before {
			t.Errorf("%s: %v, cost %+v", k.Name, err, k.cost(w, 0))
		} else if again := w.Attach(direct); again == nil || again.Error() != err.Error() {
			t.Errorf("%s: %v, and asked again: %v", k.Name, err, again)
		}
		w = sole(t, k)
		o := tracers.NewOps("o", tracers.CountHits, 0)
		if err := w.Detach(o); !errors.Is(err, tracers.EBUSY) {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := w.Attach(tracers.NewOps("wrong", tracers.CountHits, 0, 2)); !errors.Is(err, tracers.ENOENT) {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := w.Attach(o); err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := w.Attach(o); !errors.Is(err, tracers.EBUSY) {
			t.Errorf("%s: attached twice: %v", k.Name, err)
		}
		if _, err := k.New(Config{}); err == nil || !strings.Contains(err.Error(), "Config.Sites is empty") {
			t.Errorf("%s: %v", k.Name, err)
		}
		if err := sole(t, k).Attach(&tracers.Ops{}); err != nil { // calls nobody
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	bpf := kindOf(t, "bpf")
	w := sole(t, bpf)
	for i := range tracers.MaxTrampLinks + 1 {
		full := i == tracers.MaxTrampLinks
		if err := w.Attach(tracers.NewOps("program", tracers.CountHits, 0, 0)); errors.Is(err,
			tracers.E2BIG) != full || bpf.cost(w, 0).Called != int64(min(i+1, tracers.MaxTrampLinks)) {
			t.Errorf("program %d: %v, %d called", i+1, err, bpf.cost(w, 0).Called)
		}
	}
	if _, err := kindOf(t, "global-trampoline-padding").New(Config{Sites: []records.Addr{1 << 20,
		1 << 40}}); err == nil || !strings.Contains(err.Error(), "MiB apart") {
		t.Error(err)
	}
}

func kindOf(t testing.TB, name string) Kind {
	t.Helper()
	k, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestMismatch: a task that has read the ops and goes on once another tracer is the only
// one calls that one's function with the first one's ops, and counts it.
func TestMismatch(t *testing.T) {
	g, err := newGlobal(one)
	if err != nil {
		t.Fatal(err)
	}
	var with []*tracers.Ops
	tracer := func() *tracers.Ops {
		return tracers.NewOps("tracer", &tracers.Func{Entry: func(_ records.Addr, o *tracers.Ops,
			_ *tracers.Task) {
			with = append(with, o)
		}}, 0)
	}
	a, b := tracer(), tracer()
	for _, err := range []error{g.Attach(a), g.Detach(a), g.Attach(b)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := &Task{}
	if g.Call(0, ctx); ctx.Mismatched != 0 || len(with) != 1 || with[0] != b {
		t.Fatalf("%d mismatched, called with %v", ctx.Mismatched, with)
	}
	g.ops.Store(a) // as it was read before
	if g.Call(0, ctx); ctx.Mismatched != 1 || with[1] != a {
		t.Errorf("%d mismatched", ctx.Mismatched)
	}
}

// TestLateCaller: who was on its way to a site's literal when the last tracer was
// detached, and goes on after that, calls nobody.
func TestLateCaller(t *testing.T) {
	for _, name := range []string{"call-ops", "single-direct-far", "intermediate", "ops-trampoline", "site-trampoline"} {
		for _, direct := range []bool{true, false} {
			w, o := sole(t, kindOf(t, name)), tracers.NewOps("o", tracers.CountHits, 0)
			if direct {
				o.Func, o.Direct = nil, tracers.CountHits
			}
			if err := errors.Join(w.Attach(o), w.Detach(o)); err != nil {
				t.Fatal(err)
			}
			task := &Task{}
			if w.path(0, task); task.Hits != 0 || task.late != nil { // the call was fetched before
				t.Errorf("%s, direct %v: %d hits", name, direct, task.Hits)
			}
		}
	}
}
