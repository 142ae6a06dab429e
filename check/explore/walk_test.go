// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// walked is what there is to be seen on the way through all states of a model.
type walked struct {
	states, moves, patchers  int
	stopping, sitting, asked int
	most, least              int // references
}

// walk goes through a model, and holds what it meets against what must be so in each state.
func walk(t *testing.T, m *Model, limit int) (seen walked, err error) {
	t.Helper()
	err = Walk(t.Context(), m, limit, func(is *Moment) {
		if first := seen.states == 0; first && (is.Stopping() || is.Sits(0) || is.References(0) != 0) {
			t.Error("something has happened before the beginning")
		}
		seen.states++
		if is.Stopping() {
			seen.stopping++
		}
		if is.Sits(0) {
			seen.sitting++
		}
		for cpu := range is.CPUs {
			cause, asked, owed := is.Asked(cpu)
			if asked {
				seen.asked++
			}
			if asked != is.Pending(cpu, false) || asked && (owed < 1 || cause == cpus.Stop && !is.Stopping()) ||
				cpu == 0 && asked || owed > 1 {
				t.Errorf("cpu %d: asked %v for %s, owes %d answers", cpu, asked, cause, owed)
			}
			seen.most, seen.least = max(seen.most, is.References(cpu)), min(seen.least, is.References(cpu))
		}
	}, func(mv Move) {
		if mv.From != seen.states-1 || mv.To < 0 || mv.Patcher != strings.ContainsRune("pbd", rune(mv.What[0])) {
			t.Errorf("%+v from state %d", mv, seen.states-1)
		}
		if seen.moves++; mv.Patcher {
			seen.patchers++
		}
	})
	return seen, err
}

// TestWalk: a walk meets each state that a search without reductions counts, and each step; stops only where CPUs are
// stopped, and references only where handlers take some. One state more than the limit is too many.
func TestWalk(t *testing.T) {
	for _, tt := range []struct {
		protocol string
		stops    bool
		most     int // references of a CPU: one of the patcher's, and a handler's
	}{{"breakpoint", false, 2}, {"stop-machine", true, 0}} {
		s := setup(t, "x86_64", tt.protocol, "", 2, 1)
		want := explore(t, s, Options{Workers: 1})
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		got, err := walk(t, m, int(want.States))
		if err != nil || got.states != int(want.States) || got.moves != int(want.Transitions) || got.patchers == 0 ||
			got.patchers == got.moves {
			t.Errorf("%s: %+v, %v, want %d states, %d moves", tt.protocol, got, err, want.States, want.Transitions)
		}
		if (got.stopping > 0) != tt.stops || got.sitting == 0 || got.sitting == got.states || got.asked == 0 ||
			got.most != tt.most || got.least != 0 {
			t.Errorf("%s: %+v", tt.protocol, got)
		}
		if got, err := walk(t, m, int(want.States)-1); !errors.Is(err, ErrTooMany) || got.states > int(want.States) {
			t.Errorf("%s: %d states, %v", tt.protocol, got.states, err)
		}
	}
}

// TestWalkGoesOn: a walk leaves violations out and goes on; its error says why it was ended.
func TestWalkGoesOn(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "drop-sync-1", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r := explore(t, s, Options{Workers: 1})
	got, err := walk(t, m, 1_000_000)
	if err != nil || got.states <= int(r.States) {
		t.Errorf("%d states, %v; the search ends after %d", got.states, err, r.States)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("it is late")
	cancel(why)
	if err := Walk(ctx, m, 10, func(*Moment) {}, func(Move) {}); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

// TestLimitsInWords: a limit counts when it is reached, and 0 is none.
func TestLimitsInWords(t *testing.T) {
	for _, tt := range []struct {
		o              Options
		states, memory uint64
		took           time.Duration
		want           string
	}{
		{Options{}, 1 << 60, 1 << 60, 1 << 60, ""},
		{Options{LimitStates: 7}, 6, 9, 9, ""},
		{Options{LimitStates: 7}, 7, 0, 0, "the limit of 7 states is reached"},
		{Options{LimitMemory: 5 << 20}, 9, 5<<20 - 1, 9, ""},
		{Options{LimitMemory: 5 << 20}, 9, 5 << 20, 9, "the limit of 5 MiB is reached"},
		{Options{LimitTime: time.Minute}, 9, 9, time.Minute - 1, ""},
		{Options{LimitTime: time.Minute}, 9, 9, time.Minute, "the limit of 1m0s is reached"},
	} {
		if got := tt.o.over(tt.states, tt.memory, tt.took); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.o, got, tt.want)
		}
	}
	p := Progress{States: 2_500_000, Depth: 4, Queue: 6, Memory: 8<<20 + 5, Elapsed: 2 * time.Second}
	if got, want := p.String(), "2.5 M states, 1.25 M/s, depth 4, queue 6, 8 MiB"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	per := uint64(8*m.layout.words + 20)
	for limit, want := range map[uint64]int{0: 0, 1: 1, per - 1: 1, per: 2, 10 * per: 11} {
		if got := (&search{m: m, o: Options{LimitMemory: limit}}).roomForTrace(); got != want {
			t.Errorf("%d bytes: room for %d states, want %d", limit, got, want)
		}
	}
	m.layout.stores = 3
	if got, want := m.noRoom(), "some CPU may not have seen 3 stores, and no more can be told apart"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLookers: a search tells its watchers how far it has got.
func TestLookers(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan Progress, 1)
	ctx, cancel := context.WithCancel(t.Context())
	under, err := newSearch(m, Options{Watch: func(p Progress) {
		told <- p
		cancel()
	}})
	if err != nil {
		t.Fatal(err)
	}
	go under.watch(ctx)
	select {
	case p := <-told:
		if p.States != 1 || p.Depth != 0 {
			t.Errorf("%+v before the first level", p)
		}
	case <-time.After(time.Minute):
		t.Error("nobody was told")
	}
}

// TestBestOfSwarm: a violation counts more than none, and the shortest way most; where there is none, who has looked
// deepest. What all have looked at is added up.
func TestBestOfSwarm(t *testing.T) {
	one := func(v Verdict, depth int) *Result {
		return &Result{Verdict: v, Depth: depth, States: 3, Transitions: 5, Elapsed: 7, Collision: 0.25}
	}
	for _, tt := range []struct {
		all  []*Result
		v    Verdict
		want int
	}{
		{[]*Result{one(NotFound, 9), one(Unsafe, 8), one(Unsafe, 4), one(NotFound, 3), one(Unsafe, 5)}, Unsafe, 4},
		{[]*Result{one(Unsafe, 8), one(NotFound, 3)}, Unsafe, 8},
		{[]*Result{one(NotFound, 3), one(NotFound, 9), one(NotFound, 4)}, NotFound, 9},
	} {
		n := len(tt.all)
		got := Best(tt.all)
		if got.Verdict != tt.v || got.Depth != tt.want || got.States != uint64(3*n) || got.Transitions != uint64(5*n) ||
			got.Elapsed != time.Duration(7*n) || got.Collision != 0.25*float64(n) || tt.all[0].States != 3 {
			t.Errorf("%+v", got)
		}
	}
}

// TestWordsOfSteps: what CPUs and patchers do in words, where no shipped protocol does it.
func TestWordsOfSteps(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Lock}, {Op: poke.Sync, Round: 1}, {Op: poke.Unlock}})
	w := newWorld(m)
	for phase, want := range map[cpus.Phase]string{
		cpus.Guarded: "loads the guard of site 0: armed", cpus.Boundary: "loads the guard of site 0: disarmed"} {
		if got := w.didGuard(at(cpus.Task{Phase: phase}), "loads", "site 0"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, tt := range []struct {
		task cpus.Task
		want string
	}{
		{cpus.Task{Phase: cpus.Again, Site: 3}, "before site 3"},
		{cpus.Task{Phase: cpus.Inside, Site: 2, Off: 2, Text: 0x1f0f}, "inside site 2, behind 0f 1f"},
		{cpus.Task{Phase: cpus.Calling, Site: 1}, "behind the call at site 1, before the ops is called"},
	} {
		if got := where(at(tt.task)); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	var told []string
	tr := &tracer{m: m, e: newExpander(m, Reductions{})}
	for _, kind := range []kind{begin, stepPatcher, stepPatcher} {
		for _, s := range tr.follow(w, action{kind: kind}, nil) {
			told = append(told, s.Who+" "+s.Do+" "+s.What)
		}
	}
	want := []string{"patcher 0 b0 takes CPU 0 over", "patcher 0 p0 Lock text_mutex", "patcher 0 p0 Sync 1: asks"}
	for i := range max(len(told), len(want)) {
		if i >= len(told) || i >= len(want) || told[i] != want[i] {
			t.Fatalf("%q, want %q", told, want)
		}
	}
	if got := w.cpuState(0) + ", " + w.cpuState(1); got != "patching, "+cpus.Boundary.String()+" !" {
		t.Errorf("CPUs are %q", got)
	}
	for addr, want := range map[uint64]string{m.NopOps: "nop_ops", 0x77: "0x77"} {
		if got := w.opsName(addr); got != want {
			t.Errorf("%#x is %q, want %q", addr, got, want)
		}
	}
}

// at is a CPU in the middle of something.
func at(task cpus.Task) *cpus.CPU { return &cpus.CPU{Task: task} }

// TestMemoryOfASearch: the states of a level and of the next one count, with the set of those that were seen, and the
// most that there was is kept.
func TestMemoryOfASearch(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 3, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	under, err := newSearch(m, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	each := 8 * m.layout.words
	for range 12 {
		looked := under.count(under.queue)
		under.level()
		want := under.seen.bytes() + uint64((looked+under.count(under.next))*each)
		if p := under.progress(); p.Memory != want || p.Queue != 0 || under.peak.Load() < want {
			t.Errorf("depth %d: %d bytes, at most %d, want %d", p.Depth, p.Memory, under.peak.Load(), want)
		}
		under.deeper()
	}
}
