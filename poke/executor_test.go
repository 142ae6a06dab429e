// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"context"
	"errors"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
)

// live is an executor on a running machine with patches for all its sites.
func live(t testing.TB, p *Protocol, s Shape, roles string) (*Executor, []Patch) {
	t.Helper()
	g, patches := world(t, p, s)
	r, err := cpus.ParseRoles(roles)
	if err != nil {
		t.Fatal(err)
	}
	table := int3.NewTable(int3.PerCPU, len(r))
	m, err := cpus.NewMachine(cpus.Config{
		Code: g.code, Roles: r, Handler: table, NopOps: 1, Seed: 1,
		Initial: func(i int) isa.Text { return patches[i].Old },
	})
	if err != nil {
		t.Fatal(err)
	}
	ops := uint64(2)
	if !g.code.Literals() {
		ops = uint64(g.code.Entry)
	}
	if err := m.AddOps(ops); err != nil {
		t.Fatal(err)
	}
	m.Start()
	t.Cleanup(m.Stop)
	return NewExecutor(m, table, int3.BTree, cpus.NewRandom(1, 99), 0), patches
}

func updateOf(t testing.TB, p *Protocol, s Shape, patches []Patch) *Update {
	s.Patches = len(patches)
	return &Update{Patches: patches, Plan: compile(t, p, s, 16), Shape: s, Settles: p.Settles(s)}
}

// liveBreakpoints is the breakpoint protocol on x86_64 with eight sites, and what
// makes an update of some of them.
func liveBreakpoints(t testing.TB) (*Executor, []Patch, func([]Patch) *Update) {
	a, _ := cpus.ParseArch("x86_64")
	p := Named("breakpoint", a.Traits())
	s := shapeOf(t, "x86_64", p, 8, false)
	x, patches := live(t, p, s, "3")
	return x, patches, func(ps []Patch) *Update { return updateOf(t, p, s, ps) }
}

// reversed are the patches that take others back.
func reversed(patches []Patch) []Patch {
	out := append([]Patch(nil), patches...)
	for i := range out {
		p := &out[i]
		p.Old, p.New, p.OldOps, p.NewOps = p.New, p.Old, p.NewOps, p.OldOps
	}
	return out
}

// TestUpdatesUnderFire: every protocol that is sound on its architecture goes to
// and fro under running CPUs; now and then a store fails or the update is
// cancelled, and then every site must be old.
func TestUpdatesUnderFire(t *testing.T) {
	everyProtocol(t, func(t *testing.T, p *Protocol, s Shape) {
		if p.Name == "word" && !s.Traits.CallOps {
			t.Skip("x86_64 has no store that replaces a whole site")
		}
		s.Patches = 40
		if p.Batching == Single {
			s.Patches = 6 // three rounds each
		}
		x, forth := live(t, p, s, "busy=3,idle=1,isolated=1,irqsoff=1")
		x.Migrate = true
		patches := forth
		runs := 15
		if *long {
			runs = 90
		}
		for i := range runs {
			ctx, cancel := context.WithCancel(t.Context())
			left := i
			x.Fault = func(st Step, _ int32) error {
				if left--; left == 0 && i%3 == 1 && !st.Undo {
					return ErrInjected
				}
				if left == 0 && i%3 == 2 {
					cancel()
				}
				return nil
			}
			err := x.Run(ctx, updateOf(t, p, s, patches))
			cancel()
			var failed *Error
			undone := errors.As(err, &failed)
			if err != nil && (!undone || failed.State != AllOld) {
				t.Fatal(err)
			}
			for j := range patches {
				if got, want := x.Peek(int(patches[j].Site)), patches[j].text(undone); got != want {
					t.Fatalf("run %d (%v): site %d holds %v, want %v", i, err, j, got.Format(s.Len), want.Format(s.Len))
				}
			}
			if !undone {
				patches = reversed(patches)
			}
		}
		if n, first := x.Machine.Violations(); n > 0 {
			t.Errorf("%d violations, first %v", n, first[0])
		}
		if cause, ok := x.Machine.Ledger.Read().Conserved(); !ok {
			t.Errorf("cause %s is not conserved", cause)
		}
	})
}

// TestStuck: when the way back fails too, the breakpoints stay, and stay
// findable, so that CPUs go on running; the error says so.
func TestStuck(t *testing.T) {
	x, patches, update := liveBreakpoints(t)
	stores := 0
	x.Fault = func(Step, int32) error {
		if stores++; stores > 12 {
			return ErrInjected
		}
		return nil
	}
	err := x.Run(t.Context(), update(patches))
	var failed *Error
	if !errors.As(err, &failed) || failed.State != Stuck || !errors.Is(err, ErrInjected) {
		t.Fatalf("%v, want stuck", err)
	}
	if !x.Table.Enter(0) {
		t.Error("nothing is published, though breakpoints are left")
	} else {
		x.Table.Leave(0)
	}
	checkAftermath(t, x)
}

// TestWayBackIsLookedAt: a site that is not as the way back should have left it,
// whoever's fault that is, is not called old.
func TestWayBackIsLookedAt(t *testing.T) {
	x, patches, update := liveBreakpoints(t)
	x.Fault = func(st Step, patch int32) error {
		switch {
		case st.Undo: // somebody else writes to a site that the update had not reached
			x.Machine.Store(int(patches[7].Site), 4, 1, 0x99)
		case patch == 3:
			return ErrInjected
		}
		return nil
	}
	var failed *Error
	var m *MismatchError
	err := x.Run(t.Context(), update(patches))
	if !errors.As(err, &failed) || failed.State != Stuck || !errors.As(failed.Back, &m) || m.Addr != patches[7].Addr {
		t.Errorf("%v, want stuck at %s", err, patches[7].Addr)
	}
}

// TestNothingAfterStuck: another update would hide the breakpoints that are left.
func TestNothingAfterStuck(t *testing.T) {
	x, patches, update := liveBreakpoints(t)
	x.Fault = func(st Step, patch int32) error {
		if patch == 3 || st.Undo {
			return ErrInjected
		}
		return nil
	}
	var failed *Error
	if err := x.Run(t.Context(), update(patches[:4])); !errors.As(err, &failed) || failed.State != Stuck {
		t.Fatalf("%v, want stuck", err)
	}
	x.Fault = nil
	if err := x.Run(t.Context(), update(patches[4:])); !errors.Is(err, ErrStuck) {
		t.Errorf("%v, want it refused", err)
	}
	checkAftermath(t, x)
}

// TestMismatchPromisesNothing: a site that was not verified is as it was, and so
// is what had been promised about it.
func TestMismatchPromisesNothing(t *testing.T) {
	x, patches, update := liveBreakpoints(t)
	if err := x.Run(t.Context(), update(patches[4:])); err != nil {
		t.Fatal(err)
	}
	var m *MismatchError
	if err := x.Run(t.Context(), update(patches)); !errors.As(err, &m) || m.Addr != patches[4].Addr {
		t.Fatalf("%v, want a mismatch", err)
	}
	checkAftermath(t, x)
}

// checkAftermath lets the CPUs run on, and wants no violation.
func checkAftermath(t *testing.T, x *Executor) {
	t.Helper()
	for range 20 {
		if _, err := x.Machine.Tallies(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, first := x.Machine.Violations(); n > 0 {
		t.Errorf("%d violations, first %v", n, first[0])
	}
}

// TestStuckInStopMachine: the CPUs at least go on.
func TestStuckInStopMachine(t *testing.T) {
	a, _ := cpus.ParseArch("riscv64")
	p := Named("stop-machine", a.Traits())
	s := shapeOf(t, "riscv64", p, 8, false)
	x, patches := live(t, p, s, "3")
	stores := 0
	x.Fault = func(Step, int32) error {
		if stores++; stores > 4 {
			return ErrInjected
		}
		return nil
	}
	err := x.Run(t.Context(), updateOf(t, p, s, patches))
	var failed *Error
	if !errors.As(err, &failed) || failed.State != Stuck {
		t.Fatalf("%v, want stuck", err)
	}
	if _, err := x.Machine.Tallies(t.Context()); err != nil { // would hang
		t.Fatal(err)
	}
}

// TestRunEndsWithItsContext before anything is done.
func TestRunEndsWithItsContext(t *testing.T) {
	a, _ := cpus.ParseArch("arm64")
	p := Named("native", a.Traits())
	s := shapeOf(t, "arm64", p, 8, false)
	x, patches := live(t, p, s, "2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := x.Run(ctx, updateOf(t, p, s, patches))
	var failed *Error
	if !errors.As(err, &failed) || failed.State != AllOld || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
