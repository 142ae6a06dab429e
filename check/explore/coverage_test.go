// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestCoverageNames: what does not happen in some models that are safe, by hand.
func TestCoverageNames(t *testing.T) {
	late := []string{"miss: look again", "miss: go back"}
	handler := append([]string{"site: call", "handler: take reference", "handler: look up", "handler: give back",
		"handler: act"}, late...)
	alone := append(handler, "CPU takes what waits", "CPU fetches afresh", "CPU answers the sender")
	for _, c := range []struct {
		arch, protocol, mutation string
		cpus, sites              int
		roles                    []cpus.Role
		never                    []string
		traps                    bool
	}{
		{"x86_64", "breakpoint", "", 2, 1, nil, late, true},         // every trap finds its entry
		{"x86_64", "breakpoint", "", 1, 1, nil, alone, false},       // nobody traps, nobody is asked
		{"x86_64", "per-site", "drop-sync-3", 2, 2, nil, nil, true}, // traps come late, and are forgiven
		{"riscv64", "native", "", 2, 1, nil, nil, false},
		{"x86_64", "stop-machine", "", 2, 1, nil, nil, false},
		{"x86_64", "breakpoint-lazy", "", 0, 1, []cpus.Role{cpus.Busy, cpus.Isolated}, late, true},
	} {
		s := setup(t, c.arch, c.protocol, c.mutation, max(c.cpus, 1), c.sites)
		if c.roles != nil {
			s.Roles = c.roles
		}
		r := explore(t, s, Options{Reduce: all})
		if diff := cmp.Diff(c.never, r.Coverage.Never); r.Verdict != Safe || diff != "" {
			t.Errorf("%s %s %s on %d CPUs: %s, never reached (-want +got):\n%s", c.arch, c.protocol, c.mutation, c.cpus,
				r.Verdict, diff)
		}
		if c.traps != (r.Coverage.Traps > 0) {
			t.Errorf("%s %s on %d CPUs: %d traps", c.arch, c.protocol, c.cpus, r.Coverage.Traps)
		}
	}
}

// TestCoverageOfSearchesThatAreCut: what was reached does not depend on how many
// workers there are, nor on a search that was cut short and went on.
func TestCoverageOfSearchesThatAreCut(t *testing.T) {
	s := setup(t, "arm64", "breakpoint", "", 3, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	want, err := Explore(t.Context(), m, Options{Workers: 1, Reduce: all})
	if err != nil || want.Verdict != Safe || want.Coverage.Traps == 0 {
		t.Fatal(want, err)
	}
	o := Options{Workers: 3, Reduce: all, Checkpoint: t.TempDir() + "/search", Every: 1 << 60,
		LimitStates: want.States / 2}
	if half, err := Explore(t.Context(), m, o); err != nil || half.Verdict != Incomplete {
		t.Fatal(half, err)
	}
	o.Resume, o.LimitStates = true, 0
	got, err := Explore(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Coverage, got.Coverage); diff != "" {
		t.Errorf("resumed on three cores (-want +got):\n%s", diff)
	}
}

// TestGracePlaces: a wait for tasks alone interrupts CPUs, of either kind.
func TestGracePlaces(t *testing.T) {
	for op, want := range map[poke.Op]bool{poke.GracePeriod: true, poke.SynchronizeRCU: true, poke.Raise: false} {
		interrupted := false
		programs(t, []poke.Step{{Op: op}}).eachPlace(func(ph cpus.Phase, _ string) {
			interrupted = interrupted || ph == cpus.Interrupted
		})
		if interrupted != want {
			t.Errorf("%v: %v", op, interrupted)
		}
	}
}

// TestNamesOfPlaces: a step of a plan is named by its number and what it does, behind the update that it belongs to where
// there are several; so is one that a search has not reached.
func TestNamesOfPlaces(t *testing.T) {
	for _, tt := range []struct {
		workload Workload
		first    string
		last     string
	}{
		{Once, "step 1, Attach", "step 14, Release"},
		{Endless, "site 0: step 1, Attach", "site 0 back: step 7, Release"},
	} {
		s := setup(t, "arm64", "native", "", 2, 1)
		s.Workload = tt.workload
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		p := &m.Programs[0]
		if last := p.updates()[len(p.updates())-1]; !strings.Contains(tt.last, fmt.Sprintf("step %d,", last.To-last.From)) {
			t.Errorf("%s: the last update has %d steps", tt.workload, last.To-last.From)
		}
		if first, last := p.place(0), p.place(len(p.Plan)-1); first != tt.first || last != tt.last {
			t.Errorf("%s: from %q to %q, want from %q to %q", tt.workload, first, last, tt.first, tt.last)
		}
		if never := explore(t, s, Options{LimitStates: 1}).Coverage.Never; len(never) == 0 || never[0] != tt.first {
			t.Errorf("%s: never reached: %q", tt.workload, never)
		}
	}
}
