// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestTracesReplay forces every counterexample of the matrix on the live machine:
// every step does there what the trace says, and the last one breaks the same
// property.
func TestTracesReplay(t *testing.T) {
	replayed := 0
	sites := 2
	if testing.Short() {
		sites = 1
	}
	everything(t, 2, sites, func(t *testing.T, name string, s Setup) {
		for _, preempt := range []bool{false, true} {
			s.Preempt = preempt
			m, err := s.Model()
			if err != nil {
				t.Fatal(err)
			}
			r, err := Explore(context.Background(), m, Options{Reduce: all})
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict != Unsafe {
				continue
			}
			if _, err := Replay(m, r.Trace); err != nil {
				t.Errorf("%s: preempt %t: %v", name, preempt, err)
			}
			if n, err := Conform(m, r.Trace); err != nil {
				t.Errorf("%s: preempt %t: %d steps conform: %v", name, preempt, n, err)
			}
			replayed++
		}
	})
	if replayed < 100 {
		t.Errorf("only %d traces were replayed", replayed)
	}
}

// TestRecordsOfSeveralPatchers: live runs of patchers come to an end, also when
// they are in each other's way; else the checker has every step of them. (An update
// that fails is taken back by a plan of its own, which no trace has.)
func TestRecordsOfSeveralPatchers(t *testing.T) {
	for i, arch := range append(cpus.ArchNames(), cpus.ArchNames()...) {
		s := setup(t, arch, "breakpoint", "", 3, 2)
		s.Patchers = 2
		if i >= len(cpus.ArchNames()) {
			s.Mutation = noMutex(t)
		}
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			trace, err := Record(ctx, m, seed, 20000)
			cancel()
			if err != nil {
				t.Fatalf("%s, seed %d: %v", arch, seed, err)
			}
			if s.Mutation.Name != "" {
				continue
			}
			if n, err := Conform(m, trace); err != nil {
				t.Errorf("%s, seed %d: %d of %d steps conform: %v", arch, seed, n, len(trace.Steps), err)
			}
		}
	}
}

// TestLiveRunsConform records live runs of every protocol, and takes each through
// the checker's semantics.
func TestLiveRunsConform(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			s := setup(t, arch, protocol, "", 3, 2)
			m, err := s.Model()
			if err != nil {
				t.Fatal(err)
			}
			if protocol == "fence-per-write" && !m.Code.Traits.MaskedRounds {
				continue // hangs: see the checker's verdict
			}
			for seed := range uint64(3) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				trace, err := Record(ctx, m, seed, 20000)
				cancel()
				if err != nil {
					t.Fatalf("%s %s: %v", arch, protocol, err)
				}
				if len(trace.Steps) < 20 {
					t.Errorf("%s %s: only %d steps", arch, protocol, len(trace.Steps))
				}
				if n, err := Conform(m, trace); err != nil {
					t.Errorf("%s %s, seed %d: %d of %d steps conform: %v", arch, protocol, seed, n, len(trace.Steps), err)
				}
			}
		}
	}
}

// TestReplayRefuses what is no trace of the model: too few or too many rows of a step.
func TestReplayRefuses(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "drop-sync-1", 2, 2)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	trace := explore(t, s, Options{}).Trace
	last := len(trace.Steps) - 1
	for want, damage := range map[string]func(*Trace){
		"the trace has no steps":      func(t *Trace) { t.Steps = nil },
		"step 3, p0: 0 sites: want 2": func(t *Trace) { t.Steps[2].Sites = nil },
		"step 3, p0: 4 sites: " +
			"want 2": func(t *Trace) { t.Steps[2].Sites = slices.Repeat(t.Steps[2].Sites, 2) },
		"step 3, p0: 3 CPUs: want 2":                        func(t *Trace) { t.Steps[2].CPUs = make([]string, 3) },
		"step 3, p0: site 1: what 0 CPUs may fetch: want 2": func(t *Trace) { t.Steps[2].Sites[1].Fetch = nil },
		fmt.Sprintf("step %d, %s: violation: %q, the trace says %q", last, trace.Steps[last-1].Do, "",
			"torn-fetch"): func(t *Trace) {
			t.Steps = t.Steps[:last]
		},
	} {
		damaged := *trace
		damaged.Steps = slices.Clone(trace.Steps)
		for i := range damaged.Steps {
			damaged.Steps[i].Sites = slices.Clone(damaged.Steps[i].Sites)
		}
		damage(&damaged)
		if _, err := Replay(m, &damaged); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestNMITracesReplay: what an NMI executes while text changes is forced on the live machine, too.
func TestNMITracesReplay(t *testing.T) {
	for arch, protocol := range map[string]string{"x86_64": "stop-machine", "arm64": "stop-machine",
		"riscv64": "breakpoint"} {
		list := poke.ShippedPlans()
		file := list[slices.IndexFunc(list, func(p poke.ShippedPlan) bool { return p.Name == protocol })]
		s := setup(t, arch, protocol, "", 2, 1)
		var err error
		if s.Protocol, err = poke.ParseProtocol("nmi.plan", append(file.Text, "nmi:\n    call a site\n"...)); err != nil {
			t.Fatal(err)
		}
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Explore(t.Context(), m, Options{Reduce: all})
		if err != nil || r.Verdict != Unsafe {
			t.Fatal(arch, r, err)
		}
		if _, err := Replay(m, r.Trace); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
		if !slices.ContainsFunc(r.Trace.Steps, func(s Step) bool { return s.What == "an NMI comes" }) {
			t.Errorf("%s: no NMI in it", arch)
		}
	}
}

// TestRecordedStates: what a live run has done says the state behind each step of a CPU, and of no patcher's.
func TestRecordedStates(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	s.Workload = Once
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	live, err := Record(t.Context(), m, 1, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[bool]int{}
	for _, st := range live.Steps {
		a, _, err := parseAction(st.Do)
		if err != nil {
			t.Fatal(err)
		}
		if steps[a.byPatcher()]++; (st.After == "") != a.byPatcher() {
			t.Fatalf("%s leads to %q", st.Do, st.After)
		}
	}
	if steps[true] == 0 || steps[false] == 0 {
		t.Errorf("%v", steps)
	}
}

// TestFollowLooksOnce: what follows a step hears of its actions, and of none behind them.
func TestFollowLooksOnce(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Lock}, {Op: poke.Unlock}})
	w, tr := newWorld(m), &tracer{m: m, e: newExpander(m, Reductions{})}
	if steps := tr.follow(w, action{kind: begin}, nil); len(steps) != 1 || w.observe != nil {
		t.Errorf("%v, and it goes on listening: %v", steps, w.observe != nil)
	}
}
