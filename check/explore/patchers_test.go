// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
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
				s.Mutation.NoMutex = mutation != ""
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
			for _, noMutex := range []bool{false, true} {
				s := setup(t, arch, protocol, "", 2, 2)
				s.Patchers = 2
				s.Mutation.NoMutex = noMutex
				want := explore(t, s, Options{})
				if got := explore(t, s, Options{Reduce: all}); got.Verdict != want.Verdict || got.States > want.States {
					t.Errorf("%s %s, no mutex %t: %s with %d states, want %s with at most %d", arch, protocol, noMutex, got.Verdict,
						got.States, want.Verdict, want.States)
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
