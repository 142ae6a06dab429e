// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// roam is what some members of a swarm find.
func roam(t *testing.T, m *Model, members, states uint64, reduce Reductions) *Result {
	t.Helper()
	var found []*Result
	for n := range members {
		r, err := Roam(context.Background(), m, Member{Number: n, States: states, Reduce: reduce})
		if err != nil {
			t.Fatal(err)
		}
		if r.States > states {
			t.Errorf("member %d has looked at %d states, over %d", n, r.States, states)
		}
		found = append(found, r)
	}
	return Best(found)
}

// TestSwarm: what a swarm finds is there, no shorter than the shortest way, and the same every
// time; where there is nothing it finds nothing, and says neither safe nor unsafe.
func TestSwarm(t *testing.T) {
	for _, test := range []struct {
		arch, protocol, mutation string
		reduce                   Reductions
	}{
		{"x86_64", "breakpoint", "drop-sync-1", all},
		{"x86_64", "breakpoint", "drop-sync-3-no-recheck", Reductions{}},
		{"arm64", "breakpoint", "drop-sync-2", Reductions{Symmetry: true}},
		{"x86_64", "breakpoint", "", all},
	} {
		s := setup(t, test.arch, test.protocol, test.mutation, 2, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		whole := explore(t, s, Options{})
		r := roam(t, m, 4, 2000, test.reduce)
		again := roam(t, m, 4, 2000, test.reduce)
		if again.Elapsed = r.Elapsed; !reflect.DeepEqual(again, r) {
			t.Errorf("%+v: another time it finds something else", test)
		}
		if whole.Verdict == Safe {
			if r.Verdict != NotFound || r.Trace != nil {
				t.Errorf("%+v: %s", test, r.Verdict)
			}
			continue
		}
		if r.Verdict != Unsafe || r.Depth < whole.Depth || r.Depth != len(r.Trace.Steps) || r.Trace.Shortest {
			t.Errorf("%+v: %s in %d steps, where the shortest way has %d", test, r.Verdict, r.Depth, whole.Depth)
			continue
		}
		t.Logf("%+v: %d steps, the shortest has %d, %s", test, r.Depth, whole.Depth, r.Violation.Property)
		if _, err := Conform(m, r.Trace); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
		if _, err := Replay(m, r.Trace); err != nil {
			t.Errorf("%+v: %v", test, err)
		}
	}
}

// TestSwarmEnds: one that is cut short says so, and knows nothing.
func TestSwarmEnds(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Roam(ctx, m, Member{States: 1e6}); err == nil {
		t.Errorf("%+v", r)
	}
}

// TestSwarmWithoutBounds: a member whose depth is larger than the whole space looks at each state and at each step
// once a life, in all of its lives, and no deeper than there are states.
func TestSwarmWithoutBounds(t *testing.T) {
	for arch, protocol := range map[string]string{"x86_64": "native", "arm64": "word"} {
		s := setup(t, arch, protocol, "", 1, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		whole := explore(t, s, Options{})
		if whole.Verdict != Safe || whole.States > shallow {
			t.Fatalf("%s: %s, %d states", arch, whole.Verdict, whole.States)
		}
		r, err := Roam(t.Context(), m, Member{States: 1e6})
		if err != nil {
			t.Fatal(err)
		}
		if r.States != most*whole.States || r.Transitions != most*whole.Transitions {
			t.Errorf("%s: %d states, %d transitions, want %d times %d, %d", arch, r.States, r.Transitions, most,
				whole.States, whole.Transitions)
		}
		if r.Depth < whole.Depth || uint64(r.Depth) >= whole.States || r.Cut == "" {
			t.Errorf("%s: depth %d, the whole search's is %d", arch, r.Depth, whole.Depth)
		}
		if got, err := Roam(t.Context(), m, Member{States: whole.States + 1}); err != nil || got.States != whole.States+1 {
			t.Errorf("%s: %d states for a limit of %d, %v", arch, got.States, whole.States+1, err)
		}
	}
}

// TestSwarmPrefers: of a state's successors those of the one who is preferred come first, which is last in the list; each
// is kept beside its words.
func TestSwarmPrefers(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 3, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	e := newExpander(m, Reductions{})
	first := slices.Clone(e.initial())
	var actors []int
	var words [][]uint64
	e.expand(first, func(*cpus.Violation) bool {
		actors, words = append(actors, e.action.actor()), append(words, slices.Clone(e.next))
		return true
	})
	for _, liked := range []int{0, 1, 2, MaxCPUs} {
		r := &roamer{m: m, e: newExpander(m, Reductions{}), rng: rand.New(rand.NewPCG(1, 2)), bound: shallow}
		for i := range r.weight {
			r.weight[i] = 1
		}
		r.weight[liked] = 1e12
		if r.cross(first) || len(r.stack) != 1 || r.states != 1 || r.transitions != uint64(len(actors)) {
			t.Fatalf("%d ways on, %d states, %d transitions", len(r.stack), r.states, r.transitions)
		}
		top := r.stack[0]
		if got := slices.Sorted(slices.Values(top.which)); len(got) != len(actors) || int(got[len(got)-1]) != len(actors)-1 {
			t.Fatalf("%v of %d", got, len(actors))
		}
		if last := top.which[len(top.which)-1]; actors[last] != liked {
			t.Errorf("%d is preferred, %d comes first", liked, actors[last])
		}
		n := m.layout.words
		for i, which := range top.which {
			if !slices.Equal(top.words[i*n:(i+1)*n], words[which]) {
				t.Errorf("successor %d stands beside another's words", which)
			}
		}
	}
}

// TestSwarmShortens: once a way to a violation is known a search goes down to less than its length; the way that is kept
// leads there, step by step.
func TestSwarmShortens(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "drop-sync-1", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r := &roamer{m: m, e: newExpander(m, Reductions{}), bound: 400}
	var lengths []int
	for life := range uint64(20) {
		r.rng = rand.New(rand.NewPCG(3, life))
		if err := r.live(t.Context(), r.states+5000); err != nil {
			t.Fatal(err)
		}
		if len(r.stack) > r.bound+1 {
			t.Errorf("life %d is %d deep, over %d", life, len(r.stack), r.bound)
		}
		if n := len(r.way); n > 0 && (len(lengths) == 0 || n != lengths[len(lengths)-1]) {
			lengths = append(lengths, n)
			if trace, err := (&tracer{m: m, e: r.e}).broken(r.way); err != nil || len(trace.Steps) != n {
				t.Errorf("a way of %d steps: %v", n, err)
			}
			if r.bound != n-1 {
				t.Errorf("behind a way of %d steps the bound is %d", n, r.bound)
			}
		}
	}
	safe := setup(t, "x86_64", "breakpoint", "", 2, 1)
	if m, err = safe.Model(); err != nil {
		t.Fatal(err)
	}
	r = &roamer{m: m, e: newExpander(m, Reductions{}), rng: rand.New(rand.NewPCG(3, 0)), bound: 7}
	if err := r.live(t.Context(), 100); err != nil || r.deepest != r.bound-1 {
		t.Errorf("a search of states at most %d steps away has gone %d, %v", r.bound-1, r.deepest, err)
	}
	if len(lengths) < 2 || !slices.IsSortedFunc(lengths, func(a, b int) int { return b - a }) {
		t.Errorf("ways of %v steps, each is to be shorter than the one before", lengths)
	}
}

// TestBreaks: a way that breaks something does so again, to its end, and with steps behind it; one that lacks its last step
// does not, nor one whose answers are to other questions, one with a step that cannot be made, or one that passes over
// something that waits.
func TestBreaks(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "drop-sync-3-no-recheck", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	var way []move
	for _, st := range explore(t, s, Options{Workers: 1}).Trace.Steps {
		a, answers, err := parseAction(st.Do)
		if err != nil {
			t.Fatal(err)
		}
		way = append(way, move{a, answers})
	}
	n := len(way)
	if got, breaks := m.breaks(append(slices.Clone(way), way[n-1], way[0])); !breaks || len(got) != n {
		t.Errorf("%d of %d steps: %v", len(got), n, breaks)
	}
	asks := slices.IndexFunc(way, func(mv move) bool { return len(mv.answers) > 0 })
	other := func(change func(way []move) []move) []move {
		way := slices.Clone(way)
		way[asks].answers = slices.Clone(way[asks].answers)
		return change(way)
	}
	for name, way := range map[string][]move{
		"without its end": way[:n-1],
		"no answer":       other(func(way []move) []move { way[asks].answers = nil; return way }),
		"one too many":    other(func(way []move) []move { way[asks].answers = append(way[asks].answers, 0); return way }),
		"another answer":  other(func(way []move) []move { way[asks].answers[0] = 200; return way }),
		"no such CPU's":   other(func(way []move) []move { return slices.Insert(way, 0, move{action: action{kind: unpark}}) }),
		"a poll that would find something": other(func(way []move) []move {
			w := newWorld(m)
			for i, mv := range way {
				if w.Pending(1, false) && w.cpu[1].AtBorder() && !w.cpu[1].Polled() {
					return slices.Insert(way, i, move{action: action{kind: skip, who: 1}})
				}
				w.perform(mv.action, cpus.Repeat(mv.answers))
			}
			t.Fatal("nothing waits for CPU 1 on this way")
			return nil
		}),
	} {
		if got, breaks := m.breaks(way); breaks {
			t.Errorf("%s: %d steps", name, len(got))
		}
	}
}
