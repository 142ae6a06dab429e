// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// drive steps a patcher on paper until it ends or fails.
func drive(t testing.TB, ctx context.Context, p *Patcher, g *paper, ch cpus.Chooser) error {
	t.Helper()
	for range 100_000 {
		status, err := p.Step(ctx, g, ch)
		if err != nil || status == Ended {
			return err
		}
	}
	t.Fatal("the plan does not end")
	return nil
}

// TestPlansDoTheirWork: every protocol leaves every site new.
func TestPlansDoTheirWork(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		s.Patches = 7
		g, patches := world(t, p, s)
		pt := &Patcher{Code: g.code, Patches: patches, Plan: compile(t, p, s, 3)}
		if err := drive(t, t.Context(), pt, g, cpus.NewRandom(1, 1)); err != nil {
			t.Fatal(err)
		}
		for i := range patches {
			if !g.is(&patches[i], false, s.Literals()) {
				t.Errorf("site %d holds %s", i, g.text[i].Format(s.Len))
			}
		}
		g.check(t)
	})
}

// check is what must hold whenever an update is over.
func (g *paper) check(t testing.TB) {
	t.Helper()
	if g.refs != 0 || g.published != 0 || g.stopped || len(g.exposed) > 0 {
		t.Errorf("left behind: %d references, %d batches published, stopped %v; %v", g.refs, g.published, g.stopped,
			g.exposed)
	}
}

// TestUndoFromEverywhere lets every single store of every plan fail, and cancels
// before every single store, and demands that all is old afterwards.
func TestUndoFromEverywhere(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		s.Patches = 7
		failed := true
		k := 0
		for ; failed; k++ {
			failed = false
			for _, cancelled := range []bool{false, true} {
				g, patches := world(t, p, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				left := k
				pt := &Patcher{Code: g.code, Patches: patches, Plan: compile(t, p, s, 3)}
				pt.Fault = func(Step, int32) error {
					if left--; left >= 0 {
						return nil
					}
					if cancelled {
						cancel() // noticed before the next store
						return nil
					}
					return ErrInjected
				}
				err := drive(t, ctx, pt, g, cpus.NewRandom(uint64(k), 1))
				if err == nil { // the plan has no more than k stores
					continue
				}
				failed = true
				if want := map[bool]error{false: ErrInjected, true: context.Canceled}[cancelled]; !errors.Is(err, want) {
					t.Fatalf("store %d: %v, want %v", k, err, want)
				}
				pt.drain(g)
				back := &Patcher{Code: g.code, Patches: patches, Plan: Undo(pt.Plan, pt.At, pt.Done, s)}
				if err := drive(t, t.Context(), back, g, cpus.NewRandom(uint64(k), 2)); err != nil {
					t.Fatal(err)
				}
				for i := range patches {
					if !g.is(&patches[i], true, s.Literals()) {
						t.Errorf("store %d, cancelled %v: site %d holds %s, ops %d; plan back %v", k, cancelled, i,
							g.text[i].Format(s.Len), g.ops[i], back.Plan)
					}
				}
				g.check(t)
				if t.Failed() {
					return
				}
			}
		}
		if k <= s.Patches {
			t.Errorf("only %d stores were tried", k-1)
		}
	})
}

// TestVerifyComesFirst: one wrong site, and nothing is written anywhere.
func TestVerifyComesFirst(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		s.Patches = 5
		for bad := range 2 * s.Patches {
			g, patches := world(t, p, s)
			if bad < s.Patches {
				g.text[bad]++
			} else if bad -= s.Patches; s.Literals() {
				g.ops[bad]++
			} else {
				continue
			}
			before := append(g.text[:0:0], g.text...)
			pt := &Patcher{Code: g.code, Patches: patches, Plan: compile(t, p, s, 3)}
			err := drive(t, t.Context(), pt, g, cpus.NewRandom(1, 1))
			var m *MismatchError
			if !errors.As(err, &m) || m.Addr != patches[bad].Addr {
				t.Fatalf("site %d is wrong: %v", bad, err)
			}
			if back := Undo(pt.Plan, pt.At, pt.Done, s); len(back) != 0 {
				t.Errorf("something to take back: %v", back)
			}
			for i := range before {
				if g.text[i] != before[i] {
					t.Errorf("site %d was written", i)
				}
			}
		}
	})
}

// TestBreakpointInvariants walks through the plan of every breakpoint protocol,
// both ways, and holds it to the invariants that make it safe: the bytes behind
// the first ones change only under a breakpoint that has been followed by a
// round, and the first ones go old, breakpoint, new.
func TestBreakpointInvariants(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		if !p.Traps {
			return
		}
		s.Patches = 7
		covered := map[int32]int{} // 0: not; 1: breakpoint written; 2: and a round since
		for _, st := range compile(t, p, s, 3) {
			for i := st.From; i < st.To; i++ {
				switch {
				case st.Op == Write && st.Part == Breakpoint:
					covered[i] = 1
				case st.Op == Sync && covered[i] == 1:
					covered[i] = 2
				case st.Op == Write && st.Part == Tail && covered[i] != 2:
					t.Errorf("%v: the tail of patch %d is open", st, i)
				case st.Op == Write && st.Part == Head:
					if covered[i] != 2 {
						t.Errorf("%v: the head of patch %d never was a breakpoint", st, i)
					}
					covered[i] = 0
				}
			}
		}
	})
}

// TestUndoOfMutatedPlans lets every single store of every mutated plan fail: the
// way may be unsafe, but all is old afterwards and nothing is left behind. A plan
// that does not fail does its work all the same.
func TestUndoOfMutatedPlans(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		s.Patches = 7
		for _, m := range p.Mutations(s) {
			t.Run(m.Name, func(t *testing.T) {
				var plan []Step
				compileInto(t, p, s, 3, m.Through(func(st Step) { plan = append(plan, st) }))
				for k := 0; failAt(t, p, s, plan, k) && !t.Failed(); k++ {
				}
			})
		}
	})
}

// failStore carries a plan out until its store k, which fails, and tells whether it
// has that many.
func failStore(t *testing.T, p *Protocol, s Shape, plan []Step, k int) (*paper, *Patcher, bool) {
	g, patches := world(t, p, s)
	left := k
	pt := &Patcher{Code: g.code, Patches: patches, Plan: plan}
	pt.Fault = func(Step, int32) error {
		if left--; left >= 0 {
			return nil
		}
		return ErrInjected
	}
	failed := drive(t, t.Context(), pt, g, cpus.NewRandom(uint64(k), 1)) != nil
	pt.drain(g)
	return g, pt, failed
}

// failAt lets store k of a plan fail, takes it back, and holds what is left
// against what should be. It tells whether the plan has that many stores.
func failAt(t *testing.T, p *Protocol, s Shape, plan []Step, k int) bool {
	g, pt, failed := failStore(t, p, s, plan, k)
	patches := pt.Patches
	if failed {
		back := &Patcher{Code: g.code, Patches: patches, Plan: Undo(plan, pt.At, pt.Done, s)}
		if err := drive(t, t.Context(), back, g, cpus.NewRandom(uint64(k), 2)); err != nil {
			t.Fatal(err)
		}
		back.drain(g)
	}
	for i := range patches {
		if !g.is(&patches[i], failed, s.Literals()) {
			t.Errorf("store %d of %v failed: site %d holds %s, ops %d", k, plan, i, g.text[i].Format(s.Len), g.ops[i])
		}
	}
	if g.refs != 0 || g.published != 0 || g.stopped {
		t.Errorf("store %d of %v failed: %d references, %d batches are left, stopped %v", k, plan, g.refs, g.published,
			g.stopped)
	}
	return failed
}
