// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestWordsKeepWhatMatters walks at random, side by side, through a world and
// through one that is written into words and read back after every step: they
// must do the same for ever.
func TestWordsKeepWhatMatters(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := setup(t, rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch"), rapid.SampledFrom(poke.Names()).Draw(rt,
			"protocol"), "", rapid.IntRange(1, 4).Draw(rt, "cpus"), rapid.IntRange(1, 3).Draw(rt, "sites"))
		shape, err := s.Shape()
		if err != nil {
			rt.Fatal(err)
		}
		if m := s.Protocol.Mutations(shape); rapid.Bool().Draw(rt, "mutated") && len(m) > 0 {
			s.Mutation = rapid.SampledFrom(m).Draw(rt, "mutation")
		}
		s.Preempt = rapid.Bool().Draw(rt, "preempt") && len(s.Roles) > 1
		s.Switch = rapid.Bool().Draw(rt, "switch")
		s.Fetch = rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch")
		s.Refs = rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs")
		for i := 1; i < len(s.Roles); i++ {
			s.Roles[i] = rapid.SampledFrom([]cpus.Role{cpus.Busy, cpus.Idle, cpus.Isolated, cpus.IrqsOff}).Draw(rt, "role")
		}
		m, err := s.Model()
		if err != nil {
			rt.Fatal(err)
		}
		if m = leadOtherwise(rt, m); m.Code.Named() && !m.Code.Literals() {
			m.Programs[0].Plan = withEntries(m.Programs[0].Plan)
		}
		goWays(rt, m)
		if m.Prepare() != nil {
			return
		}
		whole, packed := newWorld(m), newWorld(m)
		a, b := make([]uint64, m.layout.words), make([]uint64, m.layout.words)
		before := make([]uint64, m.layout.words)
		whole.pack(a)
		for range 300 {
			list := whole.enabled(nil)
			act := list[rapid.IntRange(0, len(list)-1).Draw(rt, "action")]
			if other := packed.enabled(nil); !slices.Equal(list, other) {
				rt.Fatalf("%v can happen, from words %v", list, other)
			}
			answers := rapid.SliceOfN(rapid.Uint8Range(0, 250), 40, 40).Draw(rt, "answers")
			x, y := &dice{answers}, &dice{answers}
			copy(before, a)
			whole.notes = notes{}
			whole.perform(act, x)
			packed.perform(act, y)
			if fmt.Sprint(whole.found) != fmt.Sprint(packed.found) || whole.event != packed.event ||
				whole.waits != packed.waits {
				rt.Fatalf("%s: %v %v, from words %v %v", act.spell(nil), whole.found, whole.event, packed.found, packed.event)
			}
			if whole.found != nil {
				return
			}
			whole.pack(a)
			if why := writtenWrongly(whole, act, before, a); why != "" {
				rt.Fatalf("%s: %s", act.spell(nil), why)
			}
			packed.pack(b)
			if !slices.Equal(a, b) {
				rt.Fatalf("%s: words %x, from words %x", act.spell(nil), a, b)
			}
			packed.unpack(b)
		}
	})
}

// goWays draws the ways that CPUs go, and which of them are offline at first.
func goWays(t *rapid.T, m *Model) {
	for _, way := range []struct {
		in    cpus.Section
		steps []cpus.PathStep
	}{
		{cpus.OnNMI, []cpus.PathStep{cpus.DoCallEarly, cpus.DoSync}},
		{cpus.OnNMI, []cpus.PathStep{
			cpus.DoLookAtCR3, cpus.DoEnter, cpus.DoLoadKernelCR3, cpus.DoCallEarly, cpus.DoLoadUserCR3, cpus.DoLeaveAgain,
		}},
		{cpus.OnExit, []cpus.PathStep{cpus.DoLeave, cpus.DoLoadUserCR3}},
		{cpus.OnUp, []cpus.PathStep{cpus.DoCallEarly, cpus.DoComeOnline, cpus.DoSync}},
		{cpus.OnDown, []cpus.PathStep{cpus.DoGoOffline, cpus.DoCallEarly}},
	} {
		if way.in == cpus.OnDown && (!m.Code.Path.ComesUp || m.Preempt) {
			continue
		}
		if !rapid.Bool().Draw(t, way.in.String()) {
			continue
		}
		var err error
		if m.Code.Path, err = m.Code.Path.Replace(way.in, way.steps...); err != nil {
			t.Fatal(err)
		}
	}
	if last := len(m.Roles) - 1; m.Code.Path.ComesUp && last > 0 {
		m.Roles = slices.Clone(m.Roles)
		m.Roles[last] = cpus.Offline
	}
}

// writtenWrongly says what an action has changed without noting it.
func writtenWrongly(w *world, a action, before, after []uint64) string {
	own, shared := w.written()
	n := len(w.m.Roles)
	for i := range after {
		noted := shared
		switch {
		case i < n:
			noted = own>>i&1 != 0
		case w.m.Code.Path.Ways() && i >= (w.m.layout.own-1)*n && i < w.m.layout.own*n:
			noted = own>>(i%n)&1 != 0
		case w.m.Preempt && i < 2*n: // tasks move with whatever is more than a CPU's own
			if a.kind != stepCPU || own != 1<<a.who || shared {
				continue
			}
			noted = false
		}
		if before[i] != after[i] && !noted {
			return fmt.Sprintf("word %d changed, written is %+v", i, w.notes)
		}
	}
	return ""
}

// withEntries also writes what is looked up of the sites, before their text.
func withEntries(plan []poke.Step) (out []poke.Step) {
	for _, st := range plan {
		out = append(out, st)
		if st.Op == poke.Verify {
			st.Op, st.Part = poke.Write, poke.Literal
			out = append(out, st)
		}
	}
	return out
}

// TestReferencesBelowNone: who leaves a batch after somebody has published anew, or
// two who take the same batch away, leave less than no reference; nothing beside
// that may change for it.
func TestReferencesBelowNone(t *testing.T) {
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	w, got := newWorld(m), newWorld(m)
	words := make([]uint64, m.layout.words)
	for refs := int8(-MaxCPUs); refs <= MaxCPUs+1; refs++ {
		w.refs[1] = refs
		w.pack(words)
		got.unpack(words)
		if got.state != w.state {
			t.Errorf("%d references: %+v", refs, got.state)
		}
	}
}

// TestContradictions: what cannot be at once is refused.
func TestContradictions(t *testing.T) {
	for name, change := range map[string]func(m *Model){
		"one or the oth": func(m *Model) { m.Code.Path, m.Preempt = m.Code.Path.With(cpus.SiteApartMasked), true },
	} {
		s := setup(t, "arm64", "native", "", 2, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		fresh := &Model{Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps,
			Programs: m.Programs}
		change(fresh)
		if err := fresh.Prepare(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want what is wrong: %s", err, name)
		}
	}
}

// TestModelsTooWide: what the words of a state have no room for is refused.
func TestModelsTooWide(t *testing.T) {
	for name, change := range map[string]func(m *Model){
		"9 patches": func(m *Model) {
			m.Programs[0].Patches = slices.Repeat(m.Programs[0].Patches, 9)
			m.Programs[0].Plan = []poke.Step{{Op: poke.Write, Part: poke.Word, To: 9}}
		},
		"stretches": func(m *Model) { m.Code.Stretch, m.Roles[0] = 3, cpus.IrqsOff },
	} {
		s := setup(t, "x86_64", "breakpoint", "", 2, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		fresh := &Model{Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps,
			Programs: m.Programs}
		change(fresh)
		if err := fresh.Prepare(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want what is wrong: %s", err, name)
		}
	}
}

// dice is a Chooser that answers from a list.
type dice struct{ answers []uint8 }

// Choose implements cpus.Chooser.
func (d *dice) Choose(what cpus.Choice, n int) int {
	if what == cpus.ChooseLinger || len(d.answers) == 0 {
		return 0
	}
	a := int(d.answers[0]) % n
	d.answers = d.answers[1:]
	return a
}
