// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// TestOneChangeTakesNoState: where a site only goes back and forth between two
// instructions, as all sites of a Setup do, which update was begun last is nothing that a
// state must tell.
func TestOneChangeTakesNoState(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, patchers := range []int{1, 2} {
				for _, change := range []bool{false, true} {
					s := setup(t, arch, protocol, "", 3, 2)
					s.Patchers, s.Switch = patchers, change
					m, err := s.Model()
					if err != nil {
						t.Fatal(err)
					}
					for site, list := range m.changes {
						if len(list) != 1 || m.layout.change != 0 {
							t.Errorf("%s %s, %d patchers: site %d is changed in %d ways, %d bits", arch, protocol, patchers, site,
								len(list), m.layout.change)
						}
					}
				}
			}
		}
	}
}

// twoChanges is a machine whose one patcher makes breakpoints come and go at one site,
// for a call and then for another one.
func twoChanges(t *testing.T) *Model {
	t.Helper()
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	base, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{
		Code: base.Code, Roles: base.Roles, Initial: base.Initial, Literals: base.Literals, NopOps: base.NopOps,
		Attached: []uint64{uint64(entryAt), uint64(entryAt + entryStep)}, anyEnd: true,
	}
	one := base.Programs[0].Patches[0]
	other := one
	call, _, err := s.Arch.Enabled(isa.Site{Addr: one.Addr, Len: one.Len}, isa.Destination{Target: entryAt + entryStep})
	if err != nil {
		t.Fatal(err)
	}
	other.New, other.NewOps = call, uint64(entryAt+entryStep)
	p := Program{Patches: []poke.Patch{one, other}}
	for i := range int32(2) {
		for _, st := range []poke.Step{
			{Op: poke.Publish}, {Op: poke.Write}, {Op: poke.Sync}, {Op: poke.Write, Part: poke.Head, Undo: true},
			{Op: poke.Sync}, {Op: poke.Unpublish}, {Op: poke.WaitHandlers},
		} {
			st.From, st.To = i, i+1
			p.Plan = append(p.Plan, st)
		}
	}
	m.Programs = []Program{p}
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTwoChangesAreToldApart: in one bit, with which nothing goes wrong; with an index in
// which nothing has ever changed, something does.
func TestTwoChangesAreToldApart(t *testing.T) {
	m := twoChanges(t)
	if len(m.changes[0]) != 2 || m.layout.change != 1 {
		t.Fatalf("%d changes in %d bits", len(m.changes[0]), m.layout.change)
	}
	for _, r := range []Reductions{{}, all, single} {
		if got := answer(t, m, r); got.Verdict != Safe {
			t.Errorf("%s: %s %v", r, got.Verdict, got.Violation)
		}
	}
	m.changes[0] = m.changes[0][:1]
	if got := answer(t, m, all); got.Verdict != Unsafe || got.Violation.Property != cpus.WrongInstruction {
		t.Errorf("the second one not told apart: %s %v", got.Verdict, got.Violation)
	}
}

func answer(t *testing.T, m *Model, r Reductions) *Result {
	t.Helper()
	got, err := Explore(t.Context(), m, Options{Reduce: r})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestShiftedBatch: an instruction one slot behind its address is the neighbour's, found
// by every index, on every instruction set. With one site there is no neighbour.
func TestShiftedBatch(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		for _, switched := range []bool{false, true} {
			for _, sites := range []int{1, 2} {
				s := setup(t, arch, "breakpoint", "shifted-batch", 2, sites)
				s.Switch = switched
				got := explore(t, s, Options{})
				switch {
				case sites == 1 && got.Verdict != Safe:
					t.Errorf("%s, one site: %s %v", arch, got.Verdict, got.Violation)
				case sites > 1 && (got.Verdict != Unsafe || got.Violation.Property != cpus.WrongInstruction):
					t.Errorf("%s: %s %v, want a wrong instruction", arch, got.Verdict, got.Violation)
				case sites > 1:
					replays(t, s, got)
				}
			}
		}
	}
}
