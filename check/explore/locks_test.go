// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// programs is a machine whose patchers do what is said, to no site in particular.
func programs(t *testing.T, plans ...[]poke.Step) *Model {
	t.Helper()
	s := setup(t, "x86_64", "native", "", len(plans)+1, 1)
	base, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	m := &Model{
		Code: base.Code, Roles: base.Roles, Initial: base.Initial, Literals: base.Literals, NopOps: base.NopOps, anyEnd: true,
	}
	for _, plan := range plans {
		m.Programs = append(m.Programs, Program{Patches: base.Programs[0].Patches, Plan: plan})
	}
	if err := m.Prepare(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLocksAndDeadlocks: two locks in both orders are a violation though nothing
// hangs yet; patchers that wait for each other hang, and nobody else does.
func TestLocksAndDeadlocks(t *testing.T) {
	lock := func(m poke.Mutex) poke.Step { return poke.Step{Op: poke.Lock, Mutex: m} }
	unlock := func(m poke.Mutex) poke.Step { return poke.Step{Op: poke.Unlock, Mutex: m} }
	step := func(op poke.Op) poke.Step { return poke.Step{Op: op} }
	a, b := poke.TextMutex, poke.JumpLabelMutex
	for name, c := range map[string]struct {
		plans [][]poke.Step
		want  cpus.Property // "" for safe
	}{
		"both orders": {[][]poke.Step{
			{lock(a), lock(b), unlock(b), unlock(a)}, {lock(b), lock(a), unlock(a), unlock(b)},
		}, cpus.LockOrder},
		"one order": {[][]poke.Step{
			{lock(a), lock(b), unlock(b), unlock(a)}, {lock(a), lock(b), unlock(a), unlock(b)},
		}, ""},
		"one after the other": {[][]poke.Step{
			{lock(a), unlock(a), lock(b), unlock(b)}, {lock(b), unlock(b), lock(a), unlock(a)},
		}, ""},
		"twice":        {[][]poke.Step{{lock(a), lock(a)}}, cpus.Deadlock},
		"never told":   {[][]poke.Step{{step(poke.Expect)}}, cpus.Deadlock},
		"told in time": {[][]poke.Step{{step(poke.Expect)}, {step(poke.Raise)}}, ""},
		"told too late": {[][]poke.Step{{lock(a), step(poke.Expect), unlock(a)}, {lock(a), step(poke.Raise), unlock(a)}},
			cpus.Deadlock},
		"kept for ever":    {[][]poke.Step{{lock(a)}, {lock(a), unlock(a)}}, cpus.Deadlock},
		"stopped for ever": {[][]poke.Step{{step(poke.StopMachine)}}, cpus.Deadlock},
		"stopped twice": {[][]poke.Step{
			{step(poke.StopMachine), step(poke.Resume)}, {step(poke.StopMachine), step(poke.Resume)},
		}, ""},
		"rounds at each other": {[][]poke.Step{
			{{Op: poke.Sync, Round: 1}}, {{Op: poke.Sync, Round: 1}},
		}, ""},
		"a round in stop_machine": {[][]poke.Step{
			{step(poke.StopMachine), {Op: poke.Sync, Round: 1}, step(poke.Resume)},
		}, cpus.Deadlock},
		"a lock and a stop": {[][]poke.Step{
			{lock(a), step(poke.StopMachine), step(poke.Resume), unlock(a)}, {lock(a), {Op: poke.Sync, Round: 1}, unlock(a)},
		}, ""},
		"a lock that who stands still has": {[][]poke.Step{
			{step(poke.StopMachine), lock(a), unlock(a), step(poke.Resume)}, {lock(a), unlock(a)},
		}, cpus.Deadlock},
		"references given back twice": {[][]poke.Step{
			{{Op: poke.Publish, To: 1}, step(poke.Unpublish), step(poke.Unpublish), step(poke.WaitHandlers)},
		}, cpus.Deadlock},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range []Reductions{{}, all, single} {
				m := programs(t, c.plans...)
				got, err := Explore(t.Context(), m, Options{Reduce: r})
				if err != nil {
					t.Fatal(err)
				}
				if c.want == "" {
					if got.Verdict != Safe {
						t.Errorf("reduce %s: %s: %v", r, got.Verdict, got.Violation)
					}
					continue
				}
				if got.Verdict != Unsafe || got.Violation.Property != c.want {
					t.Errorf("reduce %s: %s, %v; want %s", r, got.Verdict, got.Violation, c.want)
					continue
				}
				if _, err := Replay(m, got.Trace); err != nil {
					t.Error(err)
				}
			}
			live := lives(t, programs(t, c.plans...))
			if stuck := live.Verdict == Unsafe; stuck != (c.want != "") {
				t.Fatalf("%s and %s: %v", c.want, live.Verdict, live.Violation)
			} else if stuck {
				t.Log(live.Violation.Property, live.Violation.Why)
				if _, err := Replay(programs(t, c.plans...), live.Trace); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestGracePeriodsAtOnce: two that can be waited for at the same time are refused,
// those under a common lock are not.
func TestGracePeriodsAtOnce(t *testing.T) {
	for _, c := range []struct {
		locks [2]poke.Mutex
		ok    bool
	}{
		{[2]poke.Mutex{poke.FtraceLock, poke.FtraceLock}, true},
		{[2]poke.Mutex{poke.FtraceLock, poke.TextMutex}, false},
	} {
		s := setup(t, "x86_64", "native", "", 3, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		fresh := &Model{Code: m.Code, Roles: m.Roles, Initial: m.Initial, Literals: m.Literals, NopOps: m.NopOps}
		for _, l := range c.locks {
			fresh.Programs = append(fresh.Programs, Program{Patches: m.Programs[0].Patches, Plan: []poke.Step{
				{Op: poke.Lock, Mutex: l}, {Op: poke.GracePeriod}, {Op: poke.Unlock, Mutex: l},
			}})
		}
		if err := fresh.Prepare(); (err == nil) != c.ok {
			t.Errorf("under %v: %v", c.locks, err)
		}
	}
}

// TestPatchersStandStillToo: a patcher makes no step while its CPU stands still or
// handles an interrupt.
func TestPatchersStandStillToo(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Raise}})
	for phase, steps := range map[cpus.Phase]bool{cpus.Boundary: true, cpus.Stopped: false, cpus.Syncing: false} {
		w := newWorld(m)
		w.sat[0] = sitting
		w.cpu[m.homes[0]].Phase = phase
		if got := slices.Contains(w.enabled(nil), action{kind: stepPatcher}); got != steps {
			t.Errorf("CPU %s: the patcher makes a step: %t", phase, got)
		}
	}
}

// TestMaskedPatcher: while a patcher holds interrupts back in its walk, its CPU answers no round; it does where the walk
// holds back none.
func TestMaskedPatcher(t *testing.T) {
	for _, masked := range []bool{false, true} {
		m := programs(t, []poke.Step{{Op: poke.Walk, Masked: masked}}, []poke.Step{{Op: poke.Split}, {Op: poke.Sync}})
		full, err := newSearch(m, Options{Exact: true})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := full.run(t.Context()); err != nil || r.Verdict != Safe {
			t.Fatal(r, err)
		}
		walks, answers, w := 0, 0, newWorld(m)
		home := m.homes[0]
		err = full.seen.each(func(_ uint64, words []uint64) error {
			w.unpack(words)
			at, _, stage := w.patcher[0].Place()
			if w.patcher[0].Between() || at != 0 || stage == 0 || !w.Pending(home, false) {
				return nil
			}
			walks++
			if slices.Contains(w.enabled(nil), action{kind: stepCPU, who: uint8(home)}) {
				answers++
			}
			return nil
		})
		if err != nil || walks == 0 || (answers == walks) == masked || masked && answers > 0 {
			t.Errorf("masked %v: CPU %d can answer in %d of %d states, %v", masked, home, answers, walks, err)
		}
	}
}

// TestBegins: a patcher whose sites are not ready can begin if another one that changes them gets on, and not by itself.
func TestBegins(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Raise}}, []poke.Step{{Op: poke.Raise}})
	w := newWorld(m)
	w.patcher[0].Menu = nil // nothing that it could begin
	for able, want := range map[[MaxPatchers]bool]bool{{}: false, {true}: false, {false, true}: true, {true, true}: true} {
		if got := w.begins(0, &able); got != want {
			t.Errorf("where %v get on: %v", able, got)
		}
	}
}
