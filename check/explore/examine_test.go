// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"reflect"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestFootprintsAreWhole: steps touch what is noted and nothing else, and are the same
// without the CPUs that do not make them, in machines that have something of everything.
func TestFootprintsAreWhole(t *testing.T) {
	for name, s := range examined(t) {
		x, err := Examine(t.Context(), s, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d states, %d steps, %d footprints", name, x.States, x.Steps, len(x.Footprints))
		for _, s := range append(x.Unnoted, x.Unlike...) {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// examined are machines in which everything is touched.
func examined(t *testing.T) map[string]*Model {
	machines := map[string]Setup{
		"breakpoint": setup(t, "x86_64", "breakpoint", "", 3, 1),
		"word":       setup(t, "arm64", "word", "", 3, 2),
		"stop":       setup(t, "riscv64", "stop-machine", "", 3, 2),
		"shared":     setup(t, "x86_64", "breakpoint", "", 3, 1),
		"lazy":       setup(t, "x86_64", "breakpoint-lazy", "", 2, 1),
		"patchers":   setup(t, "arm64", "stop-machine", "", 2, 2),
	}
	change := func(name string, f func(s *Setup)) {
		s := machines[name]
		f(&s)
		machines[name] = s
	}
	change("shared", func(s *Setup) { s.Refs = int3.SharedRef })
	change("lazy", func(s *Setup) { s.Roles[1] = cpus.Isolated })
	change("patchers", func(s *Setup) { s.Patchers = 2 })
	out := map[string]*Model{}
	for name, s := range machines {
		m, err := s.Model()
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = m
	}
	out["changes"] = twoChanges(t)
	return out
}

// miss is what a footprint can lack.
type miss struct {
	thing Thing
	what  string
}

// TestFootprintsMissNothing leaves each thing out of the footprints that have it, and
// looks whether that is noticed in some state.
func TestFootprintsMissNothing(t *testing.T) {
	had, caught := map[miss]int{}, map[miss]int{}
	for _, m := range examined(t) {
		leaveOut(t, m, 3000, had, caught)
	}
	for k := range had {
		if caught[k] == 0 && k != (miss{Window, "read"}) { // no page is mapped in these machines
			t.Errorf("a %s of %s that is left out of %d footprints is not noticed", k.what, k.thing, had[k])
		}
	}
}

// leaveOut counts in how many footprints there is what, and in how many it is missed.
func leaveOut(t *testing.T, m *Model, states uint64, had, caught map[miss]int) {
	x, err := newExaminer(m)
	if err != nil {
		t.Fatal(err)
	}
	e, n := newExpander(m, Reductions{}), m.layout.words
	x.pasts = x.e.initial()
	for level := x.e.initial(); len(level) > 0 && x.got.States < states; level = level[n:] {
		words := level[:n]
		e.expand(words, func(*cpus.Violation) bool {
			a, answers := e.action, e.answers()
			f := x.footprint(words, a, answers)
			for what, of := range map[string]*Things{"read": &f.Reads, "write": &f.Writes, "add": &f.Adds} {
				whole := *of
				whole.Each(func(thing Thing) {
					kind, _ := thing.Kind()
					had[miss{kind, what}]++
					if *of = whole &^ Things(0).With(thing); x.unnoted(words, f, a, answers) != "" {
						caught[miss{kind, what}]++
					}
				})
				*of = whole
			}
			return true
		})
		level = x.state(words, level)
	}
}

// TestModelsOfOtherSizes: With takes over all that a model is made of.
func TestModelsOfOtherSizes(t *testing.T) {
	m := examined(t)["lazy"]
	m.Slots, m.Filling, m.Lookup, m.Refs = 3, poke.AsQueued, 1, int3.SharedRef
	o, err := m.With([]cpus.Role{cpus.Busy, cpus.Isolated, cpus.Idle}, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, b := reflect.ValueOf(m).Elem(), reflect.ValueOf(o).Elem()
	for i := range a.NumField() {
		switch f := a.Type().Field(i); {
		case !f.IsExported() || f.Name == "Roles":
		case f.Name == "Code":
			if !reflect.DeepEqual(*m.Code, *o.Code) {
				t.Error("another code")
			}
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			t.Errorf("another %s", f.Name)
		}
	}
}
