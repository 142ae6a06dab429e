// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestSeveralPatchers: two patchers with sites of their own and text_mutex between
// them are safe; without it, those that share a published batch are not. A CPU
// that a patcher waits on answers grace periods, and its own task makes no call
// meanwhile: with that wrong, breakpoint was not safe.
func TestSeveralPatchers(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for protocol, breaks := range map[string]bool{"native": arch == "x86_64", "breakpoint": true, "stop-machine": false} {
			for _, mutation := range []string{"", "no-mutex"} {
				s := setup(t, arch, protocol, "", 3, 2)
				s.Patchers = 2
				if mutation != "" {
					s.Mutation = noMutex(t)
				}
				want := Safe
				if mutation != "" && breaks {
					want = Unsafe
				}
				got := explore(t, s, Options{Reduce: all})
				if got.Verdict != want {
					t.Errorf("%s %s %s: %s, want %s: %v", arch, protocol, mutation, got.Verdict, want, got.Violation)
				}
				if got.Verdict == Unsafe {
					replays(t, s, got)
				}
			}
		}
	}
}

// TestLoopOutsideOfBatches: of two patchers each goes through its own sites, wherever the
// loop stands that does.
func TestLoopOutsideOfBatches(t *testing.T) {
	p, err := poke.ParseProtocol("loop.plan", []byte(
		"name: loop\nbatching: whole\nonce after:\n    for each patch\n        Write word\n        Fence\n    end\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t, "arm64", poke.Native, "", 3, 2)
	s.Protocol, s.Patchers = p, 2
	for _, w := range []Workload{Once, Endless} {
		s.Workload = w
		if m, err := s.Model(); err != nil || len(m.Programs) != 2 || len(m.Programs[1].Patches) == 0 {
			t.Errorf("%s: %v", w, err)
		}
	}
}

// TestContention: two patchers that want the same site are safe with text_mutex between them.
// Without it they are not, but for what changes one word and has no promise to break: arm64's
// ftrace takes no text_mutex (aarch64_insn_patch_text_nosync, arch/arm64/kernel/patching.c).
func TestContention(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "stop-machine"} {
			for _, without := range []bool{false, true} {
				s := setup(t, arch, protocol, "", 2, 1)
				s.Patchers, s.Contend, s.Workload = 2, true, Endless
				want := Safe
				if without {
					s.Mutation = noMutex(t)
					if arch != "arm64" || protocol != "native" {
						want = Unsafe
					}
				}
				got := explore(t, s, Options{Reduce: all})
				if got.Verdict != want {
					t.Errorf("%s %s, no mutex %t: %s, want %s: %v", arch, protocol, without, got.Verdict, want, got.Violation)
				}
				if got.Verdict == Unsafe {
					replays(t, s, got)
				}
			}
		}
	}
}

// TestContentionFindsTheOther: a patcher finds the other one's text and goes on, each in as
// many states: nothing tells the two apart but the CPUs that they sit on.
func TestContentionFindsTheOther(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	s.Patchers, s.Contend, s.Workload = 2, true, Endless
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	a, b := m.Programs[0].Patches[0], m.Programs[1].Patches[0]
	if a.Site != b.Site || a.Old != b.Old || a.New == b.New {
		t.Fatalf("patches %+v and %+v: want one site, one text to begin with, and two to go to", a, b)
	}
	full, err := newSearch(m, Options{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := full.run(t.Context()); err != nil || r.Verdict != Safe {
		t.Fatal(r, err)
	}
	found, w := [2]int{}, newWorld(m)
	err = full.seen.each(func(_ uint64, words []uint64) error {
		w.unpack(words)
		for i, other := range []poke.Patch{b, a} {
			if p := &w.patcher[i]; !p.Between() && p.Plan[p.At].Op == poke.Publish && w.Peek(0) == other.New {
				found[i]++
			}
		}
		return nil
	})
	if err != nil || found[0] == 0 || found[0] != found[1] {
		t.Errorf("%d states in which a patcher has found the other one's text, %v", found, err)
	}
}

// noMutex is the defect of patchers that take no text_mutex.
func noMutex(t *testing.T) poke.Mutation {
	t.Helper()
	for _, m := range poke.AllMutations() {
		if m.Name == "no-mutex" {
			return m
		}
	}
	t.Fatal("no mutation leaves text_mutex out")
	return poke.Mutation{}
}

// replays forces what a search has found on the live machine.
func replays(t *testing.T, s Setup, r *Result) {
	t.Helper()
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Replay(m, r.Trace); err != nil {
		t.Error(err)
	}
}

// TestReductionsWithSeveralPatchers compares the reductions that are left when
// there are two of them with the full search.
func TestReductionsWithSeveralPatchers(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "stop-machine"} {
			for i := range 4 {
				without, contend := i&1 != 0, i&2 != 0
				s := setup(t, arch, protocol, "", 2, 2-i/2)
				s.Patchers, s.Contend = 2, contend
				if without {
					s.Mutation = noMutex(t)
				}
				want := explore(t, s, Options{})
				if got := explore(t, s, Options{Reduce: all}); got.Verdict != want.Verdict || got.States > want.States {
					t.Errorf("%s %s, no mutex %t, contend %t: %s with %d states, want %s with at most %d", arch, protocol, without,
						contend, got.Verdict, got.States, want.Verdict, want.States)
				}
			}
		}
	}
}

// TestSwitch: sites that go over from one ops to another never call a third, nor
// one that is gone, unless nobody waits before it goes.
func TestSwitch(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "stop-machine"} {
			for _, preempt := range []bool{false, true} {
				s := setup(t, arch, protocol, "", 3, 1)
				s.Switch, s.Preempt = true, preempt
				// Pairs and preemption do not go together (8547649981e6), but where both calls
				// have the same jalr: then the auipc alone says whom.
				want := Safe
				m, err := s.Model()
				if err != nil {
					t.Fatal(err)
				}
				p, n := m.Programs[0].Patches[0], m.Code.Traits.FetchLen
				if preempt && m.Code.Several() && p.Old.Slice(n, n) != p.New.Slice(n, n) {
					want = Unsafe
				}
				if got := explore(t, s, Options{Reduce: all}); got.Verdict != want {
					t.Errorf("%s %s, preempt %t: %s: %v", arch, protocol, preempt, got.Verdict, got.Violation)
				}
			}
			s := setup(t, arch, protocol, "no-grace-period", 3, 1)
			s.Switch, s.Preempt = true, true
			got := explore(t, s, Options{Reduce: all})
			if got.Verdict != Unsafe {
				t.Errorf("%s %s without a grace period: %s", arch, protocol, got.Verdict)
				continue
			}
			replays(t, s, got)
		}
	}
}

// TestTablesAreStores: what a patcher tells handlers and tracers waits in its store buffer
// as its text does, and a fence is there for each: without it, who sees the breakpoint
// finds nothing published, and who loads what a site names finds no ops there. Where
// stores do not wait there is nothing to leave out.
func TestTablesAreStores(t *testing.T) {
	for _, c := range []struct {
		protocol, mutation string
		change             bool
		breaks             cpus.Property
	}{
		{"breakpoint", "no-publish-fence", false, cpus.UnhandledBreakpoint},
		{"breakpoint-global", "no-publish-fence", true, cpus.UnhandledBreakpoint},
		{"word", "no-attach-fence", true, cpus.TornLiteral},
	} {
		for _, arch := range cpus.ArchNames() {
			s := setup(t, arch, c.protocol, "", 2, 1)
			s.Switch = c.change
			shape, err := s.Shape()
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.Protocol.Mutation(c.mutation, shape)
			if buffered := shape.Traits.StoresBuffered; !buffered {
				if err == nil {
					t.Errorf("%s %s offers %s", arch, c.protocol, c.mutation)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := explore(t, s, Options{}); got.Verdict != Safe {
				t.Errorf("%s %s: %s %v", arch, c.protocol, got.Verdict, got.Violation)
			}
			s.Mutation = m
			for _, r := range []Reductions{{}, all} {
				got := explore(t, s, Options{Reduce: r})
				if got.Verdict != Unsafe || got.Violation.Property != c.breaks {
					t.Errorf("%s %s %s: %s %v, want %s", arch, c.protocol, c.mutation, got.Verdict, got.Violation, c.breaks)
					continue
				}
				replays(t, s, got)
			}
		}
	}
}
