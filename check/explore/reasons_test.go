// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestDeadlocksInWords: who hangs, at which step, and whom it waits for.
func TestDeadlocksInWords(t *testing.T) {
	lock, unlock := poke.Step{Op: poke.Lock, Mutex: poke.TextMutex}, poke.Step{Op: poke.Unlock, Mutex: poke.TextMutex}
	step := func(op poke.Op) poke.Step { return poke.Step{Op: op} }
	round := poke.Step{Op: poke.Sync, Round: 1}
	for _, tt := range []struct {
		plans [][]poke.Step
		cpu   int
		want  string
	}{
		{[][]poke.Step{{lock, lock}}, 0,
			"patcher 0 waits at Lock text_mutex for patcher 0, which has the lock and waits itself"},
		{[][]poke.Step{{lock, step(poke.Expect), unlock}, {lock, step(poke.Raise), unlock}}, 0,
			"patcher 0 waits at Expect for a message that never comes"},
		{[][]poke.Step{{step(poke.StopMachine), round, step(poke.Resume)}}, 0,
			"patcher 0 waits at Sync 1 for CPU 1, which stands still with interrupts off"},
		{[][]poke.Step{{step(poke.StopMachine)}}, 0,
			"the program is over, and the CPUs that it has stopped never go on"},
		{[][]poke.Step{{{Op: poke.Publish, To: 1}, step(poke.Unpublish), step(poke.Unpublish), step(poke.WaitHandlers)}}, 0,
			"patcher 0 waits at WaitHandlers"},
		{[][]poke.Step{{{Op: poke.Fence}}, {lock, lock}}, 1,
			"patcher 1 waits at Lock text_mutex for patcher 1, which has the lock and waits itself"},
	} {
		r, err := Explore(t.Context(), programs(t, tt.plans...), Options{Workers: 1})
		if err != nil || r.Violation == nil {
			t.Fatal(tt.want, r, err)
		}
		if v := r.Violation; v.Property != cpus.Deadlock || v.CPU != tt.cpu || v.Why != tt.want {
			t.Errorf("%v, want %s", v, tt.want)
		}
	}
}

// TestStuckInWords: liveness says which update never ends, or which CPU never comes back, and what it is about.
func TestStuckInWords(t *testing.T) {
	for _, tt := range []struct {
		plan   []poke.Step
		shared func(w *world) cpus.Shared
		want   cpus.Violation
	}{
		{[]poke.Step{{Op: poke.Sync, Round: 1}}, func(w *world) cpus.Shared { return mute{w} },
			cpus.Violation{Property: cpus.StuckUpdate, CPU: 0, Why: "patcher 0 is at Sync 1, and whatever follows, no update " +
				"of its ever ends"}},
		{[]poke.Step{{Op: poke.Write, Part: poke.Breakpoint, To: 1}, {Op: poke.Sync, Round: 1}},
			func(w *world) cpus.Shared { return gone{w} }, cpus.Violation{Property: cpus.StuckCPU, CPU: 0, Why: "it is trapped at 0, and " +
				"whatever follows, it never comes back between two calls"}},
	} {
		l := newLiveness(programs(t, tt.plan), Options{})
		l.e.w.shared = tt.shared(l.e.w)
		if cut, err := l.forward(t.Context()); err != nil || cut != "" {
			t.Fatal(cut, err)
		}
		state, _ := l.stuck()
		got, err := l.witness(state)
		if err != nil || got.Violation.Property != tt.want.Property || got.Violation.CPU != tt.want.CPU ||
			got.Violation.Why != tt.want.Why {
			t.Errorf("%v, %v, want %v", got.Violation, err, tt.want)
		}
	}
}

// TestLostTasksInWords: where every update can end, a task that was preempted counts as one that never ends its call, and
// where there is none, CPUs that are never all at rest again.
func TestLostTasksInWords(t *testing.T) {
	s := setup(t, "arm64", "native", "", 2, 1)
	s.Preempt = true
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	l := newLiveness(m, Options{})
	if cut, err := l.forward(t.Context()); err != nil || cut != "" {
		t.Fatal(cut, err)
	}
	told := map[string]int{}
	for state := range l.well[:300] {
		l.well[state] = 1 // as if this were all that can be reached
		got, err := l.witness(uint32(state))
		if err != nil || got.Violation.Property != cpus.StuckCPU {
			t.Fatal(got, err)
		}
		why, _, _ := strings.Cut(got.Violation.Why, ", ")
		_, w, _ := l.way(l.wayTo(uint32(state)))
		if c := got.Violation.CPU; strings.HasPrefix(why, "the task") {
			if !w.parked[c].There() || !w.cpu[c].BetweenCalls() {
				t.Errorf("state %d: %s, and CPU %d is %s", state, why, c, w.cpuState(c))
			}
		} else if strings.HasPrefix(why, "it is ") && why != "it is "+w.cpuState(c) && w.cpu[c].BetweenCalls() {
			t.Errorf("state %d: CPU %d: %s", state, c, why)
		}
		told[strings.Join(strings.Fields(why)[:2], " ")]++
	}
	if len(told) != 3 || told["the task"] == 0 || told["it is"] == 0 || told["it stands"] == 0 {
		t.Errorf("%v", told)
	}
}

// TestWalkInWords: the two reads of a walk, of a page that is split and of one that is not.
func TestWalkInWords(t *testing.T) {
	walk := poke.Step{Op: poke.Walk}
	for _, tt := range []struct {
		plan []poke.Step
		want []string
	}{
		{[]poke.Step{walk}, []string{"Walk; the program is over"}},
		{[]poke.Step{{Op: poke.Split}, walk}, []string{"Split", "Walk: the large page's entry leads to a table",
			"Walk: reads that table; the program is over"}},
	} {
		m := programs(t, tt.plan)
		w, tr := newWorld(m), &tracer{m: m, e: newExpander(m, Reductions{})}
		tr.follow(w, action{kind: begin}, nil)
		for _, want := range tt.want {
			steps := tr.follow(w, action{kind: stepPatcher}, nil)
			if len(steps) != 1 || steps[0].What != want {
				t.Errorf("%v, want %q", steps, want)
			}
		}
	}
}

// TestAnswersAreConserved: a patcher that waits for more answers, or for fewer, than are owed has lost one or got one
// twice, and both are violations. What is owed may be in a box, or taken, by an interrupted task, too.
func TestAnswersAreConserved(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Sync, Round: 1}})
	for left, want := range map[int8]string{0: "", 1: "patcher 0 waits for 2 answers, and others are owed",
		-1: ""} { // it goes on then
		w := newWorld(m)
		for _, kind := range []kind{begin, stepPatcher} {
			w.perform(action{kind: kind}, cpus.Repeat(nil))
		}
		if !w.conserved(0) || w.owed(0, 0) != 0 || w.owed(1, 0) != 1 {
			t.Fatalf("%d and %d answers are owed", w.owed(0, 0), w.owed(1, 0))
		}
		w.left[0] += left
		if w.conserved(0) != (left == 0) {
			t.Errorf("%d more: conserved %v", left, w.conserved(0))
		}
		w.perform(action{kind: stepPatcher}, cpus.Repeat(nil))
		got := ""
		if w.found != nil {
			got = w.found.Why
		}
		if got != want || want != "" && w.found.Property != cpus.Conservation {
			t.Errorf("%d more: %q, want %q", left, got, want)
		}
	}
}

// TestBrokenInWords: what an update was to leave, and what is there instead: text of a site, and the ops of a
// literal.
func TestBrokenInWords(t *testing.T) {
	for _, tt := range []struct{ arch, plan, want string }{
		{"x86_64", "Write word\n    Sync 1",
			"site 0: the program is over and left this instead of 0f 1f 44 00 00"},
		{"arm64", "Write word\n    Sync 1", "site 0: the program is over and left this ops in the literal instead of"},
	} {
		p, err := poke.ParseProtocol("x.plan", []byte("name: x\nbatching: whole\nevery batch:\n    "+tt.plan+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, tt.arch, "word", "", 1, 1)
		s.Protocol = p
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(m)
		w.sat[0] = sitting
		left := m.final[0][0][0]
		w.holdSite(&w.patcher[0], 0, left)
		if w.found != nil {
			t.Errorf("%s: %v of what was left as it was", tt.arch, w.found)
		}
		if tt.arch == "arm64" {
			w.literal[0] = left.ops + 1
		} else {
			w.log[0], w.logged = store{0, 1 - w.base[0]}, 1
		}
		w.holdSite(&w.patcher[0], 0, left)
		if v := w.found; v == nil || v.Property != cpus.BrokenSite || v.CPU != 0 || v.Addr != m.Code.Sites[0] ||
			!strings.HasPrefix(fmt.Sprintf("site %d: %s", v.Site, v.Why), tt.want) || tt.arch == "arm64" &&
			(v.Bytes != fmt.Sprintf("%#x", left.ops+1) || !strings.HasSuffix(v.Why, fmt.Sprintf(" %#x", left.ops))) {
			t.Errorf("%v, want %s", v, tt.want)
		}
	}
}

// TestDigests: a checkpoint is of one model and one way of searching it: whatever changes either changes its name.
func TestDigests(t *testing.T) {
	digest := func(change func(*Setup), o Options) string {
		s := setup(t, "x86_64", "breakpoint", "", 3, 2)
		change(&s)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		under, err := newSearch(m, o)
		if err != nil {
			t.Fatal(err)
		}
		return under.digest()
	}
	same := func(*Setup) {}
	seen := map[string]int{digest(same, Options{}): 0}
	for i, change := range []func(*Setup){
		func(s *Setup) { s.Protocol = poke.Named("per-site", s.Arch.Traits()) }, func(s *Setup) { s.Sites = 1 },
		func(s *Setup) { s.Roles[2] = cpus.Isolated }, func(s *Setup) { s.Roles = s.Roles[:2] },
		func(s *Setup) { s.Fetch = cpus.Quadword }, func(s *Setup) { s.Preempt = true },
		func(s *Setup) { s.Lookup = int3.Hash }, func(s *Setup) { s.Refs = int3.SharedRef },
		func(s *Setup) { s.Descending = true }, func(s *Setup) { s.Offset = 3 }, func(s *Setup) { s.Workload = Endless },
		func(s *Setup) { s.Patchers = 2 }, func(s *Setup) { s.Switch = true }, func(s *Setup) { s.Lengths = []int{5, 1} },
	} {
		if before, there := seen[digest(change, Options{})]; there {
			t.Errorf("changes %d and %d make one search", before, i+1)
		}
		seen[digest(change, Options{})] = i + 1
	}
	for _, o := range []Options{{Reduce: all}, {Reduce: Reductions{Order: true}}, {Exact: true}} {
		if _, there := seen[digest(same, o)]; there {
			t.Errorf("%+v is the same search", o)
		}
		seen[digest(same, o)] = -1
	}
	if digest(same, Options{}) != digest(same, Options{Workers: 3, LimitStates: 7}) {
		t.Error("limits make another search")
	}
}

// TestNoWay: a violation that no second search finds again is an error, unless the limit of memory may have kept it
// from that, or somebody wants an end: then there is no trace.
func TestNoWay(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 1) // where nothing breaks
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx    context.Context
		memory uint64
		want   error
	}{{t.Context(), 0, errNoTrace}, {t.Context(), 1, nil}, {t.Context(), 1 << 40, nil}, {over, 0, nil}} {
		var r Result
		under := &search{m: m, o: Options{Reduce: all, LimitMemory: tt.memory}}
		if err := under.findTrace(tt.ctx, &r); err != tt.want || r.Trace != nil {
			t.Errorf("limit %d: %v, %v, want %v", tt.memory, err, r.Trace, tt.want)
		}
	}
}

// TestSitesAlike: sites are alike when no program is about one of them any more, and none differs from the first in
// what stands there, what is promised of it, how it changes, and what it names.
func TestSitesAlike(t *testing.T) {
	s := setup(t, "arm64", "native", "", 2, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(w *world)
		alike  bool
	}{
		"as they are":          {func(*world) {}, true},
		"before the last step": {func(w *world) { w.patcher[0].At = m.past[0] - 1 }, false},
		"another text":         {func(w *world) { w.base[1]++ }, false},
		"another promise":      {func(w *world) { w.settled[1] = cpus.PromiseOf(0, 2) }, false},
		"another change":       {func(w *world) { w.begun[1]++ }, false},
		"another ops":          {func(w *world) { w.literal[1]++ }, false},
		"a store":              {func(w *world) { w.logged = 1 }, false},
		"a batch":              {func(w *world) { w.published = 1 }, false},
	} {
		w := newWorld(m)
		w.patcher[0].At = m.past[0]
		if tt.change(w); w.sitesAlike() != tt.alike {
			t.Errorf("%s: alike %v", name, w.sitesAlike())
		}
	}
}
