// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"reflect"
	"testing"
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
