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

// randomPlan draws a program that makes no sense but can be executed: nothing is
// given back that was not taken.
func randomPlan(t *rapid.T, s *Setup, patches int, literals, tail bool) (plan []poke.Step) {
	const (
		cleared = iota
		published
		unpublished
	)
	batch, stopped := cleared, false
	all := poke.Step{To: int32(patches)}
	add := func(op poke.Op, undo bool) *poke.Step {
		st := all
		st.Op, st.Undo = op, undo
		plan = append(plan, st)
		return &plan[len(plan)-1]
	}
	parts := []poke.Part{poke.Breakpoint, poke.Head, poke.Word}
	if tail {
		parts = append(parts, poke.Tail)
	}
	if literals {
		parts = append(parts, poke.Literal, poke.LiteralLow, poke.LiteralHigh)
	}
	add(poke.Attach, false)
	for range rapid.IntRange(3, 14).Draw(t, "steps") {
		undo := rapid.Bool().Draw(t, "undo")
		switch rapid.IntRange(0, 15).Draw(t, "step") {
		case 0, 1, 2, 3, 4:
			add(poke.Write, undo).Part = rapid.SampledFrom(parts).Draw(t, "part")
		case 5, 6:
			if !stopped || s.Arch.Traits().MaskedRounds {
				add(poke.Sync, false).Round = 1
			}
		case 7:
			add(poke.Fence, false)
		case 8, 9:
			switch batch {
			case cleared:
				add(poke.Publish, undo)
				batch = published
			case published:
				add(poke.Unpublish, false)
				batch = unpublished
			default:
				add(rapid.SampledFrom([]poke.Op{poke.WaitHandlers, poke.WaitHandlers, poke.Clear}).Draw(t, "end"), false)
				batch = cleared
			}
		case 10:
			if add(map[bool]poke.Op{false: poke.StopMachine, true: poke.Resume}[stopped], false); true {
				stopped = !stopped
			}
		case 11, 12, 13:
			if !stopped {
				add(rapid.SampledFrom([]poke.Op{poke.GracePeriod, poke.SynchronizeRCU}).Draw(t, "grace"), false)
			}
		case 14:
			add(poke.Settle, undo)
		case 15:
			add(poke.Release, true)
		}
	}
	if stopped {
		add(poke.Resume, false)
	}
	return plan
}

// randomGuard draws when an update can come: at any time, or where the first site is as
// it was at first, or not.
func randomGuard(t *rapid.T) poke.Guard {
	return rapid.SampledFrom([]poke.Guard{{}, {}, {Old: 1}, {New: 1}}).Draw(t, "when")
}

// leadOtherwise draws how sites lead to tracers: as the model says, by direct calls,
// or with an ops that is loaded apart. It returns another model, not Prepared.
func leadOtherwise(t *rapid.T, m *Model) *Model {
	code := *m.Code
	switch rapid.SampledFrom([]string{"as it says", "as it says", "direct", "apart"}).Draw(t, "way") {
	case "direct":
		code.Path = code.Path.With(cpus.SiteDirect)
	case "apart":
		code.Path = code.Path.With(cpus.SiteApart)
		if !m.Preempt && rapid.Bool().Draw(t, "entry masked") {
			code.Path = code.Path.With(cpus.SiteApartMasked)
		}
	}
	code.Path = handleOtherwise(t, code.Path)
	return &Model{
		Code: &code, Roles: m.Roles, Programs: slices.Clone(m.Programs), Initial: m.Initial, Literals: m.Literals,
		NopOps: m.NopOps, Attached: m.Attached, Lookup: m.Lookup, Refs: m.Refs, Slots: m.Slots, Filling: m.Filling,
		Preempt: m.Preempt, SameSites: m.SameSites,
	}
}

// handleOtherwise draws what handlers do, and what follows when they find nothing.
func handleOtherwise(t *rapid.T, p cpus.Path) cpus.Path {
	draw := func(in cpus.Section, programs ...string) {
		program := rapid.SampledFrom(programs).Draw(t, in.String())
		if program == "" {
			return
		}
		var steps []cpus.PathStep
		for text := range strings.SplitSeq(program, "; ") {
			step, err := cpus.ParsePathStep(in, text)
			if err != nil {
				t.Fatal(err)
			}
			steps = append(steps, step)
		}
		var err error
		if p, err = p.Replace(in, steps...); err != nil {
			t.Fatal(err)
		}
	}
	draw(cpus.InHandler, "", "", "", "look up; act", "look up; sync; skip", "take reference; give back; look up; act",
		"take reference; look up; give back; sync; skip", "look up; take reference; give back; act")
	draw(cpus.OnMiss, "", "", "skip", "look again; skip", "fatal")
	return p
}

// TestReductionsOnRandomPrograms compares searches with and without reductions on
// programs and paths that nobody would write, and forces what breaks on the live
// machine.
func TestReductionsOnRandomPrograms(t *testing.T) {
	manyPrograms(t)
	verdicts := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		arch := rapid.SampledFrom(cpus.ArchNames()).Draw(rt, "arch")
		protocol := rapid.SampledFrom([]string{"breakpoint", "stop-machine"}).Draw(rt, "layout of")
		s := setup(t, arch, protocol, "", rapid.SampledFrom([]int{2, 2, 2, 3}).Draw(rt, "CPUs"), rapid.IntRange(1, 2).Draw(rt, "sites"))
		s.Fetch = rapid.SampledFrom(cpus.Fetches()).Draw(rt, "fetch")
		s.Refs = rapid.SampledFrom([]int3.Refs{int3.PerCPU, int3.SharedRef, int3.NoRef}).Draw(rt, "refs")
		if rapid.Bool().Draw(rt, "no recheck") {
			s.Mutation.Path = []cpus.Variant{cpus.MissFatal}
		}
		s.Preempt = rapid.Bool().Draw(rt, "preempt")
		s.Switch = rapid.Bool().Draw(rt, "switch")
		for i := range s.Roles[1:] {
			s.Roles[i+1] = rapid.SampledFrom([]cpus.Role{cpus.Busy, cpus.Busy, cpus.Idle, cpus.IrqsOff}).Draw(rt, "role")
		}
		m, err := s.Model()
		if err != nil {
			rt.Fatal(err)
		}
		fresh := leadOtherwise(rt, m)
		fresh.anyEnd = true
		patches := m.Programs[0].Patches
		program := Program{Patches: patches}
		for n := rapid.IntRange(0, 3).Draw(rt, "updates"); ; n-- { // 0: one, once
			from := len(program.Plan)
			program.Plan = append(program.Plan, randomPlan(rt, &s, len(patches), fresh.Code.Named(),
				m.Code.Len > m.Code.Traits.BreakpointLen)...)
			if n == 0 && program.Menu == nil {
				break
			}
			program.Menu = append(program.Menu, poke.Choice{From: from, To: len(program.Plan), Sites: 1, When: randomGuard(rt)})
			if n == 1 {
				break
			}
		}
		fresh.Programs = []Program{program}
		if err := fresh.Prepare(); err != nil {
			verdicts["refused"]++
			return // too many stores, or texts
		}
		verdict, wrong := agree(t, fresh)
		verdicts[verdict]++
		if wrong != "" {
			rt.Errorf("%s\n%s\n%v", wrong, fresh.Code.Path, fresh.Programs[0].Plan)
		}
	})
	t.Logf("%v", verdicts)
	if !testing.Short() && (verdicts[string(Safe)] == 0 || verdicts[string(Unsafe)] == 0) { // else they are few
		t.Errorf("%v: not both verdicts", verdicts)
	}
}

// TestSymmetryMergesOrbits counts the states of a full search that differ in more
// than the numbers of equal CPUs by trying every way to exchange them: so many
// does the search with symmetry reach.
func TestSymmetryMergesOrbits(t *testing.T) {
	s := setup(t, "arm64", "native", "", 4, 1)
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	full, err := newSearch(m, Options{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := full.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	orbits := map[string]bool{}
	err = full.seen.each(func(_ uint64, words []uint64) error {
		var least string
		// CPU 0 is the patcher's; the other three are equal.
		for _, order := range [][3]int{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
			w := slices.Clone(words)
			for i, from := range order {
				w[1+i] = words[from]
			}
			if text := fmt.Sprint(w); least == "" || text < least {
				least = text
			}
		}
		orbits[least] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := explore(t, s, Options{Reduce: Reductions{Symmetry: true}}); got.States != uint64(len(orbits)) {
		t.Errorf("%d states with symmetry, %d orbits of %d states", got.States, len(orbits), full.states.Load())
	}
}
