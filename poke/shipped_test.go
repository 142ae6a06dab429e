// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
)

// nativePlans are the shipped files that are native somewhere.
var nativePlans = map[string]string{"x86_64": "breakpoint", "arm64": "word", "riscv64": "word-rounds"}

func parse(t testing.TB, name string, src []byte) *Protocol {
	t.Helper()
	p, err := ParseProtocol(name, src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shippedPlan parses the shipped file of that name.
func shippedPlan(t testing.TB, name string) *Protocol {
	t.Helper()
	for _, sh := range ShippedPlans() {
		if sh.Name == name {
			p := parse(t, name+".plan", sh.Text)
			if p.Name != name {
				t.Errorf("%s.plan has the name %q", name, p.Name)
			}
			return p
		}
	}
	t.Fatalf("no file %s.plan", name)
	return nil
}

// TestShippedPlans: the file of every built-in protocol compiles to the plan of
// that protocol, step by step, and says the same of it.
func TestShippedPlans(t *testing.T) {
	files := map[string]bool{}
	for _, sh := range ShippedPlans() {
		files[sh.Name] = true
	}
	for _, arch := range cpus.ArchNames() {
		a, _ := cpus.ParseArch(arch)
		for _, name := range Names() {
			built := Named(name, a.Traits())
			if name == Native {
				name = nativePlans[arch]
			}
			t.Run(arch+"/"+built.Name, func(t *testing.T) { sameProtocol(t, arch, shippedPlan(t, name), built) })
			delete(files, name)
		}
	}
	if len(files) > 0 {
		t.Errorf("files of no built-in protocol: %v", files)
	}
}

// sameProtocol holds a protocol from a file against a built-in one.
func sameProtocol(t *testing.T, arch string, got, want *Protocol) {
	t.Helper()
	if got.Batching != want.Batching || got.Layout != want.Layout || got.Traps != want.Traps ||
		got.OneStore != want.OneStore {
		t.Errorf("batching %d, layout %d, traps %v, one store %v; want %d, %d, %v, %v", got.Batching, got.Layout, got.Traps,
			got.OneStore,
			want.Batching, want.Layout, want.Traps, want.OneStore)
	}
	if got.Summary != want.Summary || got.Source != want.Source {
		t.Errorf("summary %q, source %q; want %q, %q", got.Summary, got.Source, want.Summary, want.Source)
	}
	for _, detach := range []bool{false, true} {
		for _, patches := range []int{1, 2, 7, 300} {
			s := shapeOf(t, arch, want, patches, detach)
			if err := want.check(s); err != nil {
				sameRefusal(t, got, s)
				return
			}
			for _, batch := range []int{1, 3, 256, patches} {
				if d := cmp.Diff(compile(t, want, s, batch), compile(t, got, s, batch)); d != "" {
					t.Fatalf("%d patches in batches of %d (-built-in +file):\n%s", patches, batch, d)
				}
			}
			if got.Settles(s) != want.Settles(s) || got.Lazy(s) != want.Lazy(s) {
				t.Errorf("settles %v, lazy %v; want %v, %v", got.Settles(s), got.Lazy(s), want.Settles(s), want.Lazy(s))
			}
			if g, w := mutationsOf(got, s), mutationsOf(want, s); !slices.Equal(g, w) {
				t.Errorf("mutations %v, want %v", g, w)
			}
		}
	}
}

// sameRefusal holds that a file is refused where its protocol is, by line.
func sameRefusal(t *testing.T, p *Protocol, s Shape) {
	t.Helper()
	var impossible *ImpossibleError
	err := p.Compile(s, cut(s.Patches, 1), func(Step) { t.Error("a step of what is impossible") })
	if !errors.As(err, &impossible) || impossible.Property != cpus.Deadlock || impossible.At != p.File+":19" {
		t.Errorf("%v; want it refused at line 19 as impossible", err)
	}
}

func mutationsOf(p *Protocol, s Shape) (names []string) {
	for _, m := range p.Mutations(s) {
		names = append(names, m.Name)
	}
	return names
}
