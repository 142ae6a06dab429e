// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
)

// TestPlans holds every protocol's plan for five patches in batches of three
// against the page that a person has read (testdata/plans.txt; -update).
func TestPlans(t *testing.T) {
	var b strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, name := range Names() {
			a, _ := cpus.ParseArch(arch)
			p := Named(name, a.Traits())
			s := shapeOf(t, arch, p, 5, true)
			fmt.Fprintf(&b, "# %s %s: %s\n", arch, name, p.Summary)
			if err := p.check(s); err != nil {
				fmt.Fprintf(&b, "impossible: %v\n\n", err)
				continue
			}
			for _, st := range compile(t, p, s, 3) {
				fmt.Fprintln(&b, st)
			}
			fmt.Fprintln(&b)
		}
	}
	golden(t, "plans.txt", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got; rewrite with -update):\n%s", path, d)
	}
}

// TestRounds compares what plans count to with the formulas of the kernels.
func TestRounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 2000).Draw(rt, "patches")
		slots := rapid.IntRange(1, 600).Draw(rt, "slots")
		batches := (n + slots - 1) / slots
		for _, tt := range []struct {
			arch, protocol string
			rounds, stops  int
		}{
			{"x86_64", "native", 3 * batches, 0}, // 3 * ceil(n/256)
			{"x86_64", "breakpoint", 3 * batches, 0},
			{"arm64", "breakpoint", 3 * batches, 0},
			{"riscv64", "breakpoint", 3 * batches, 0},
			{"arm64", "native", 0, 0},
			{"arm64", "word", 0, 0},
			{"riscv64", "native", n + 1, 0}, // a literal's fence each, and one at the end
			{"riscv64", "word", 1, 0},
			{"x86_64", "breakpoint-global", 3, 0}, // to Linux 5.5
			{"x86_64", "per-site", 3 * n, 0},      // jump labels to 5.2
			{"x86_64", "stop-machine", 0, 1},
			{"riscv64", "stop-machine", 0, 1},
			{"riscv64", "fence-per-write", n, 1}, // to 6.9
		} {
			a, _ := cpus.ParseArch(tt.arch)
			p := Named(tt.protocol, a.Traits())
			var c Count
			for _, st := range compile(t, p, shapeOf(t, tt.arch, p, n, false), slots) {
				c.Add(st)
			}
			if c.Rounds != tt.rounds || c.Stops != tt.stops {
				rt.Errorf("%s %s, %d patches in batches of %d: %d rounds, %d stops; want %d, %d",
					tt.arch, tt.protocol, n, slots, c.Rounds, c.Stops, tt.rounds, tt.stops)
			}
			if got, want := c.IPIs(8, 0), 7*(tt.rounds+tt.stops); got != want {
				rt.Errorf("%s %s: %d interrupts, want %d", tt.arch, tt.protocol, got, want)
			}
		}
	})
}

// TestSettles: who promises that nothing old is executed after completion.
func TestSettles(t *testing.T) {
	want := map[string]bool{
		"x86_64/word": false,                        // nobody is told
		"arm64/word":  false, "arm64/native": false, // until the CPU's next context synchronisation
	}
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		w, exception := want[s.Traits.Name+"/"+p.Name]
		if got := p.Settles(s); got != (w || !exception) {
			t.Errorf("settles: %v", got)
		}
	})
}

// TestDeadlockIsRefused: rounds that nobody can answer are found before they
// are sent.
func TestDeadlockIsRefused(t *testing.T) {
	for arch, possible := range map[string]bool{"x86_64": false, "arm64": false, "riscv64": true} {
		a, _ := cpus.ParseArch(arch)
		p := Named("fence-per-write", a.Traits())
		err := p.check(shapeOf(t, arch, p, 1, false))
		if (err == nil) != possible {
			t.Errorf("fence-per-write on %s: %v", arch, err)
		}
	}
}

// TestMutationsChangeThePlan: what a protocol offers breaks something of it,
// and what it does not offer is refused by name.
func TestMutationsChangeThePlan(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		s.Patches, s.Detach, s.Switch = 5, true, true
		plan := compile(t, p, s, 3)
		for _, name := range MutationNames() {
			m, err := p.Mutation(name, s)
			if err != nil {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%s: refused without its name: %v", name, err)
				}
				continue
			}
			var mutant []Step
			emit := m.Through(func(st Step) { mutant = append(mutant, st) })
			for _, st := range plan {
				emit(st)
			}
			program := Life{Patches: s.Patches, Fenced: s.Traits.StoresBuffered}.Toggle(plan, plan)
			if m.Around != nil && cmp.Equal(program, m.OnProgram(program)) {
				t.Errorf("%s: leaves the program as it is", name)
			}
			if cmp.Equal(plan, mutant) && m.Around == nil && m.Path == nil && m.Filling == Sorted && !m.Overfull {
				t.Errorf("%s: leaves the plan as it is", name)
			}
		}
	})
}
