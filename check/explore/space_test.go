// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
)

// TestLazyRounds: rounds may leave out a CPU in user space when it catches up
// before it runs anything that is patched, and not when it runs something first.
func TestLazyRounds(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, r := range []Reductions{{}, all, single} {
			for _, sites := range []int{1, 2} {
				s := setup(t, arch, "breakpoint-lazy", "", 1, sites)
				s.Roles = append(s.Roles, cpus.Isolated)
				if got := explore(t, s, Options{Reduce: r}); got.Verdict != Safe {
					t.Errorf("%s, %d sites, reduce %s: %s: %v", arch, sites, r, got.Verdict, got.Violation)
				}
				s.Early = true
				got := explore(t, s, Options{Reduce: r})
				if got.Verdict != Unsafe {
					t.Errorf("%s, %d sites, reduce %s, early: %s", arch, sites, r, got.Verdict)
					continue
				}
				m, err := s.Model()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Replay(m, got.Trace); err != nil {
					t.Errorf("%s: %v", arch, err)
				}
				t.Logf("%s, %d sites: %s at depth %d of %d states", arch, sites, got.Violation.Property, got.Depth, got.States)
			}
		}
	}
}

// TestOtherRoles: what the roles of CPUs do to protocols, nothing breaks: CPUs
// that sleep, that are in user space, that mask interrupts.
func TestOtherRoles(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range []string{"native", "breakpoint", "breakpoint-lazy", "stop-machine"} {
			for _, role := range []cpus.Role{cpus.Idle, cpus.Isolated, cpus.IrqsOff} {
				s := setup(t, arch, protocol, "", 1, 1)
				s.Roles = append(s.Roles, role)
				want := explore(t, s, Options{})
				if want.Verdict != Safe {
					t.Errorf("%s %s with a CPU that is %s: %s: %v", arch, protocol, role, want.Verdict, want.Violation)
				}
				if got := explore(t, s, Options{Reduce: all}); got.Verdict != want.Verdict {
					t.Errorf("%s %s with a CPU that is %s, reduced: %s", arch, protocol, role, got.Verdict)
				}
			}
		}
	}
}

// TestSharedReferenceStaysWhereItIs: CPUs that are exchanged take nothing along
// that is not theirs, whichever of them come first.
func TestSharedReferenceStaysWhereItIs(t *testing.T) {
	for _, refs := range []int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef} {
		s := setup(t, "x86_64", "breakpoint", "", 0, 1)
		s.Roles = []cpus.Role{cpus.Isolated, cpus.Isolated, cpus.Busy}
		s.Refs = refs
		want := explore(t, s, Options{Reduce: Reductions{Order: true}})
		if got := explore(t, s, Options{Reduce: all}); got.Verdict != want.Verdict || got.Verdict != Safe {
			t.Errorf("refs %s: %s: %v, want %s", refs, got.Verdict, got.Violation, want.Verdict)
		}
	}
}
