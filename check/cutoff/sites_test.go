// SPDX-License-Identifier: Apache-2.0

package cutoff_test

import (
	"context"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/check/cutoff"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// TestSameWithEverySite: where a site among others is safe and the conditions hold, so are
// one, two and three sites; where it is not, one of these breaks the same.
func TestSameWithEverySite(t *testing.T) {
	largest, safe, refused, alarms := 2, 0, 0, 0
	if *long {
		largest = 3
	}
	each(t, func(t *testing.T, s explore.Setup) {
		if !*long && (s.Mutation.Name != "" && s.Mutation.Name != "drop-sync-3" || s.Arch.Traits().Name != "x86_64") {
			t.Skip("only with -long")
		}
		s.Sites = 2
		m := model(t, s)
		among, err := m.Among(0)
		if err != nil {
			t.Fatal(err)
		}
		at := bounded(t, among)
		var a *cutoff.Answer
		if at == explore.Safe { // else nothing is claimed
			if a, err = cutoff.Sites(context.Background(), &s, 100_000); err != nil {
				t.Fatal(err)
			}
		}
		broken := false
		for s.Sites = 1; s.Sites <= largest && !broken; s.Sites++ {
			broken = bounded(t, model(t, s)) == explore.Unsafe
		}
		switch {
		case at == explore.Unsafe && !broken:
			alarms++
			t.Logf("a site among others breaks, and %d sites do not", largest)
		case at == explore.Safe && !a.Holds():
			refused++
			t.Logf("%v; sites break: %t", a.Failed(), broken)
		case at == explore.Safe && broken:
			t.Errorf("%v, and %d sites break", a.Conditions, s.Sites-1)
		case at == explore.Safe:
			safe++
		}
	})
	t.Logf("safe with any number of sites: %d; refused: %d; false alarms: %d", safe, refused, alarms)
	if safe == 0 {
		t.Error("nothing is safe with any number of sites")
	}
}

// bounded explores a model as far as a test has time for.
func bounded(t *testing.T, m *explore.Model) explore.Verdict {
	t.Helper()
	all, _ := explore.ParseReductions("all")
	r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: all, LimitStates: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	return r.Verdict
}

// TestSiteConditions: what has no machine of one site among others, and which condition
// says so.
func TestSiteConditions(t *testing.T) {
	published, err := poke.ParseProtocol("published.plan", []byte(`name: published
batching: buffered
once before:
    Publish
    Write breakpoint
    Sync 1
    Write tail
    Sync 2
    Write head
    Sync 3
    Unpublish
    WaitHandlers
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, arch, protocol string
		change               func(s *explore.Setup)
		fails                string // "" for none
	}{
		{"sites one after the other", "x86_64", "per-site", func(*explore.Setup) {}, ""},
		{"pairs", "riscv64", "stop-machine", func(*explore.Setup) {}, ""},
		{"two patchers", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Patchers, s.Roles = 2, make([]cpus.Role, 3)
		}, cutoff.OnePatcher},
		{"preempted tasks", "x86_64", "breakpoint", func(s *explore.Setup) { s.Preempt = true }, cutoff.OnePatcher},
		{"a finite workload", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Workload = explore.Once
		}, cutoff.OnePatcher},
		{"a vector that overflows", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Mutation, s.Buffer = mutation("overfull-batch"), sched.Buffer{Slots: 3}
		}, cutoff.Batches},
		{"one batch for every buffer", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Protocol, s.Buffer = published, sched.Buffer{Slots: 2}
		}, cutoff.Batches},
		{"batches larger than any machine", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Buffer = sched.Buffer{Slots: explore.MaxEndless}
		}, cutoff.Batches},
		{"sites that cross elsewhere", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Fetch = cpus.Atomic
		}, cutoff.Alike},
		{"sites that cross at words", "arm64", "breakpoint", func(s *explore.Setup) { s.Fetch = cpus.Atomic }, ""},
		{"a neighbour's entry", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Mutation = mutation("shifted-batch")
		}, cutoff.SameForSite},
		{"sleepers", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Roles = []cpus.Role{cpus.Busy, cpus.Idle}
		}, cutoff.SameForSite},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setup(t, c.arch, c.protocol, 2, 2)
			s.Workload = explore.Endless
			c.change(&s)
			a, err := cutoff.Sites(context.Background(), &s, 0)
			if err != nil {
				t.Fatal(err)
			}
			failed := slices.ContainsFunc(a.Failed(), func(f cutoff.Condition) bool { return f.Name == c.fails })
			if a.Holds() != (c.fails == "") || !a.Holds() && !failed {
				t.Errorf("%v, want %q to fail", a.Conditions, c.fails)
			}
		})
	}
}
