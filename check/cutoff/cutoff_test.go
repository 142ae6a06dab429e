// SPDX-License-Identifier: Apache-2.0

package cutoff_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/check/cutoff"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// each calls f with every protocol, mutation, architecture and fetch model that the
// test has time for.
func each(t *testing.T, f func(t *testing.T, s explore.Setup)) {
	fetches := []cpus.Fetch{cpus.Weak}
	protocols := map[string][]string{
		"x86_64": {"breakpoint", "stop-machine"}, "arm64": {"word", "stop-machine"}, "riscv64": {"word"},
	}
	if *long {
		var all []string
		for _, p := range poke.Protocols() {
			all = append(all, p.Name)
		}
		fetches = cpus.Fetches()
		protocols = map[string][]string{"x86_64": all, "arm64": all, "riscv64": all}
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range protocols[arch] {
			s := setup(t, arch, protocol, 2, 1)
			shape, err := s.Shape()
			if err != nil {
				continue // does not fit the architecture
			}
			for _, mutation := range append([]poke.Mutation{{}}, s.Protocol.Mutations(shape)...) {
				for _, fetch := range fetches {
					s.Mutation, s.Fetch, s.Workload = mutation, fetch, explore.Endless
					t.Run(fmt.Sprintf("%s/%s/%s/%s", arch, protocol, mutation.Name, fetch), func(t *testing.T) { f(t, s) })
				}
			}
		}
	}
}

// TestSameAtEverySize: the verdict at the cutoff is the verdict of every larger machine,
// explored without what the cutoff leaves out.
func TestSameAtEverySize(t *testing.T) {
	largest, n := 3, 0
	if *long {
		largest = 5
	}
	each(t, func(t *testing.T, s explore.Setup) {
		m, err := s.Model()
		if err != nil {
			t.Skip(err)
		}
		a := of(t, m)
		if len(a.Roles) != 2 || !a.Holds() {
			t.Fatalf("cutoff at %d CPUs, want 2: %v", len(a.Roles), a.Failed())
		}
		n++
		at := verdict(t, a.Model)
		for ncpus := 3; ncpus <= largest; ncpus++ {
			s.Roles = make([]cpus.Role, ncpus)
			if got := verdict(t, model(t, s)); got != at {
				t.Errorf("%d CPUs: %s, at the cutoff %s", ncpus, got, at)
			}
		}
	})
	t.Logf("%d configurations", n)
}

// TestConditions is about machines that are not simply busy CPUs with references of their
// own: which of them have a cutoff, at which CPUs, and which condition the others break.
func TestConditions(t *testing.T) {
	for _, c := range []struct {
		name, arch, protocol string
		change               func(s *explore.Setup)
		roles                string // of the cutoff
		fails                string // the condition, "" for none
		long                 bool
	}{
		{"busy", "x86_64", "breakpoint", func(*explore.Setup) {}, "2", "", false},
		{"two sites", "arm64", "word", func(s *explore.Setup) { s.Sites = 2 }, "2", "", false},
		{"shared counter", "x86_64", "breakpoint", func(s *explore.Setup) { s.Refs = int3.SharedRef }, "2", "", false},
		{"for ever", "x86_64", "breakpoint", func(s *explore.Setup) { s.Workload = explore.Endless }, "2", "", false},
		{"for ever, a shared counter", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Workload, s.Refs = explore.Endless, int3.SharedRef
		}, "2", "", false},
		{"for ever, two sites", "riscv64", "stop-machine", func(s *explore.Setup) {
			s.Workload, s.Sites = explore.Endless, 2
		}, "2", "", false},
		{"no counter", "x86_64", "breakpoint", func(s *explore.Setup) { s.Refs = int3.NoRef }, "2", "", false},
		{"a counter that outlives its batch", "x86_64", "breakpoint", func(s *explore.Setup) {
			s.Refs, s.Mutation = int3.SharedRef, mutation("early-release")
		}, "2", cutoff.SameWithout, false},
		{"preempted tasks", "x86_64", "breakpoint", func(s *explore.Setup) { s.Preempt = true }, "2", cutoff.Private, false},
		{"stop_machine", "riscv64", "stop-machine", func(*explore.Setup) {}, "2", "", false},
		{"rounds that leave out user space", "x86_64", "breakpoint-lazy", func(s *explore.Setup) {
			s.Roles = []cpus.Role{cpus.Isolated, cpus.Busy, cpus.Isolated}
		}, "busy=2,isolated=1", "", true},
		{"sleepers", "arm64", "word", func(s *explore.Setup) {
			s.Roles = []cpus.Role{cpus.Busy, cpus.Idle, cpus.Idle, cpus.Idle}
		}, "busy=2,idle=1", "", false},
		{"two patchers and text_mutex", "x86_64", "stop-machine", func(s *explore.Setup) {
			s.Roles, s.Patchers, s.Sites = make([]cpus.Role, 3), 2, 2
		}, "3", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.long && !*long {
				t.Skip("only with -long")
			}
			s := setup(t, c.arch, c.protocol, 2, 1)
			c.change(&s)
			a := of(t, model(t, s))
			if got := cpus.FormatRoles(a.Roles); got != c.roles {
				t.Errorf("cutoff at %s, want %s", got, c.roles)
			}
			failed := slices.ContainsFunc(a.Failed(), func(f cutoff.Condition) bool { return f.Name == c.fails })
			if a.Holds() != (c.fails == "") || !a.Holds() && !failed {
				t.Errorf("%v, want %q to fail", a.Conditions, c.fails)
			}
			for _, f := range a.Failed() {
				t.Log(f)
			}
		})
	}
}

// TestLimit: a machine that was not looked at to the end proves nothing.
func TestLimit(t *testing.T) {
	a, err := cutoff.Of(t.Context(), model(t, setup(t, "x86_64", "breakpoint", 2, 1)), 100)
	if err != nil {
		t.Fatal(err)
	}
	if f := a.Failed(); len(f) != 1 || f[0].Name != cutoff.AllStates {
		t.Errorf("%v, want %s to fail", f, cutoff.AllStates)
	}
}

// mutation finds a defect by its name.
func mutation(name string) poke.Mutation {
	all := poke.AllMutations()
	return all[slices.IndexFunc(all, func(m poke.Mutation) bool { return m.Name == name })]
}
