// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestEndlessFindsWhatOnceHides: without its third round, per-site lets a handler find
// that its breakpoint is gone when the same site is changed again at once. Enabled and
// disabled once, other sites come first, and nothing shows; for ever, it does.
func TestEndlessFindsWhatOnceHides(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, sites := range []int{2, 3} {
			s := setup(t, arch, "per-site", "drop-sync-3", 2, sites)
			if got := explore(t, s, Options{Reduce: all}); got.Verdict != Safe {
				t.Errorf("%s, %d sites, once: %s, want safe", arch, sites, got.Verdict)
			}
			s.Workload = Endless
			got := explore(t, s, Options{Reduce: all})
			if got.Verdict != Unsafe || got.Violation.Property != cpus.UnhandledBreakpoint {
				t.Errorf("%s, %d sites, endless: %s %v, want an unhandled breakpoint", arch, sites, got.Verdict, got.Violation)
			}
		}
	}
}

// TestEndlessTracesAreForced: what breaks in the endless workload breaks on the live
// machine, step by step.
func TestEndlessTracesAreForced(t *testing.T) {
	unsafe := 0
	everything(t, 2, 2, func(t *testing.T, name string, s Setup) {
		if s.Fetch != cpus.Weak && testing.Short() {
			return
		}
		s.Workload = Endless
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Explore(t.Context(), m, Options{Reduce: all, LimitStates: 200_000})
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != Unsafe {
			return
		}
		unsafe++
		if _, err := Replay(m, got.Trace); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	if unsafe < 50 {
		t.Errorf("%d are unsafe: so few that this proves little", unsafe)
	}
}

// TestEveryStoreMatters: a plan that lacks one of its stores leaves something at its sites
// that the update was not to leave, a literal perhaps. Patchers that go on for ever find
// what those find that run once: an update that is over, and cannot be followed by any, is
// no end.
func TestEveryStoreMatters(t *testing.T) {
	broken := 0
	for _, arch := range cpus.ArchNames() {
		for _, plan := range poke.ShippedPlans() {
			for line := range strings.Lines(string(plan.Text)) {
				if !strings.HasPrefix(strings.TrimSpace(line), "Write ") {
					continue
				}
				text := strings.Replace(string(plan.Text), line, "", 1)
				protocol, err := poke.ParseProtocol(plan.Name, []byte(text))
				if err != nil {
					continue // nothing is left to do
				}
				s := setup(t, arch, poke.Native, "", 2, 1)
				s.Protocol = protocol
				once, err := checked(t, s)
				if err != nil {
					continue // not for this architecture
				}
				s.Workload = Endless
				endless, err := checked(t, s)
				if err != nil {
					t.Fatal(err)
				}
				if once == Unsafe {
					broken++
				}
				if once == Unsafe && endless != Unsafe {
					t.Errorf("%s, %s without %q: %s once, %s endless", arch, plan.Name, strings.TrimSpace(line), once, endless)
				}
			}
		}
	}
	if broken < 20 {
		t.Errorf("%d plans are broken: so few that this proves little", broken)
	}
}

// checked is the verdict, or why there is none.
func checked(t *testing.T, s Setup) (Verdict, error) {
	t.Helper()
	m, err := s.Model()
	if err != nil {
		return "", err
	}
	got, err := Explore(t.Context(), m, Options{Reduce: all, LimitStates: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict == Unsafe {
		if _, err := Replay(m, got.Trace); err != nil {
			t.Errorf("%s: %v", s.Protocol.Name, err)
		}
	}
	return got.Verdict, nil
}
