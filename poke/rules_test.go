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

// TestUnlockGivesBack: a lock is given back by whoever has it, the one of hotplug to those
// who bring CPUs up too, also where somebody else had it all the time.
func TestUnlockGivesBack(t *testing.T) {
	var c Commons
	r := NewRules(&cpus.Code{}, 0)
	for mu := range Mutex(NumMutexes) {
		r.lock(&c, mu, 1, 0)
		if r.Share(&c, Access{Op: Unlock, Mutex: mu}, 1, 0); c.Held[mu] != 0 {
			t.Errorf("%s: patcher %d has it still", mu, c.Held[mu]-1)
		}
	}
	x, _, _ := liveBreakpoints(t)
	other := NewExecutor(x.Machine, x.Table, int3.BTree, cpus.NewRandom(1, 98), 0)
	other.Shared, other.ID = x.Shared, 1
	lease, err := x.Machine.Occupy(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	x.Sit(lease)
	other.Sit(lease)
	comesUp := func() bool {
		up := x.Machine.BringUp(1)
		if up {
			x.Machine.EndHotplug(1)
		}
		return up
	}
	for mu := range Mutex(NumMutexes) {
		if !x.Share(Access{Op: Lock, Mutex: mu}) || other.Share(Access{Op: Lock, Mutex: mu}) {
			t.Errorf("%s: want it for one of two", mu)
		}
		if got, want := comesUp(), mu != HotplugLock; got != want {
			t.Errorf("a CPU comes up while %s is held: %v, want %v", mu, got, want)
		}
		other.Share(Access{Op: Unlock, Mutex: mu}) // not its own: nothing happens
		if other.Share(Access{Op: Lock, Mutex: mu}) {
			t.Errorf("%s: somebody who did not have it gave it back", mu)
		}
		x.Share(Access{Op: Unlock, Mutex: mu})
		if !comesUp() {
			t.Errorf("no CPU comes up though %s was given back", mu)
		}
		if !other.Share(Access{Op: Lock, Mutex: mu}) {
			t.Errorf("%s was given back, and nobody can have it", mu)
		}
		other.Share(Access{Op: Unlock, Mutex: mu})
	}
	if x.Machine.BringUp(1); x.Share(Access{Op: Lock, Mutex: HotplugLock}) {
		t.Error("the lock of hotplug is taken while a CPU comes up")
	}
	x.Machine.EndHotplug(1)
	if !x.Share(Access{Op: Lock, Mutex: HotplugLock}) {
		t.Error("the CPU is up, and nobody can have the lock of hotplug")
	}
	x.Share(Access{Op: Unlock, Mutex: HotplugLock})
}

// TestContendedPatches: what several patchers want a site to be, any of them takes for its
// old text. What nobody meant is a mismatch for them too, and so is any other text where
// nobody else wants the site.
func TestContendedPatches(t *testing.T) {
	const meant, strange = isa.Text(0x1111111111), isa.Text(0x2222222222)
	a := mustArch(t, "x86_64")
	s := shapeOf(t, "x86_64", Named("breakpoint", a), 1, false)
	for _, c := range []struct {
		contended bool
		holds     isa.Text
		ok        bool
	}{{true, meant, true}, {true, strange, false}, {false, meant, false}, {false, strange, false}} {
		g, patches := world(t, Named("breakpoint", a), s)
		g.code.Meant = []isa.Text{patches[0].Old, patches[0].New, meant}
		g.text[0], patches[0].Contended = c.holds, c.contended
		p := &Patcher{Code: g.code, Patches: patches, Plan: []Step{{Op: Verify, To: 1}}}
		_, err := p.Step(t.Context(), g, cpus.NewRandom(1, 1))
		var m *MismatchError
		if (err == nil) != c.ok || err != nil && !errors.As(err, &m) {
			t.Errorf("contended %v, the site holds %s: %v, want it accepted: %v", c.contended, c.holds.Format(5), err, c.ok)
		}
	}
}

// TestMismatchSettlesAgain: what was promised of the sites that were verified before one
// that was not as expected is promised again, since it is true again.
func TestMismatchSettlesAgain(t *testing.T) {
	x, patches, update := liveBreakpoints(t)
	if err := x.Run(t.Context(), update(patches)); err != nil {
		t.Fatal(err)
	}
	back := reversed(patches)
	x.Machine.Store(int(patches[4].Site), 4, 1, 0x99) // somebody else's
	var m *MismatchError
	if err := x.Run(t.Context(), update(back)); !errors.As(err, &m) || m.Addr != patches[4].Addr {
		t.Fatalf("%v, want a mismatch", err)
	}
	for i := range patches {
		if x.Machine.Settled(int(patches[i].Site)).Seq() == 0 {
			t.Errorf("site %d: nothing is promised any more", i)
		}
	}
}

// late puts every store into the buffer.
type late struct{}

func (late) Choose(cpus.Choice, int) int { return 0 }

// TestStoresArriveAtLast: where no fence pushes the last stores out they become visible
// all the same when the update is over, and nobody waits for them.
func TestStoresArriveAtLast(t *testing.T) {
	for _, arch := range []string{"arm64", "riscv64"} {
		a := mustArch(t, arch)
		p := Named("word", a)
		s := shapeOf(t, arch, p, 8, false)
		x, patches := live(t, p, s, "2")
		x.Chooser = late{}
		u := updateOf(t, p, s, patches)
		u.Plan = nil
		for i := range patches {
			u.Plan = append(u.Plan, Step{Op: Write, Part: Word, From: int32(i), To: int32(i) + 1})
		}
		x.Fault = func(st Step, patch int32) error {
			if patch > 0 && x.Peek(int(patches[patch-1].Site)) != patches[patch-1].Old {
				t.Errorf("%s: store %d is visible before anything pushes it out", arch, patch-1)
			}
			return nil
		}
		if err := x.Run(context.Background(), u); err != nil {
			t.Fatal(err)
		}
		for i := range patches {
			if got := x.Peek(int(patches[i].Site)); got != patches[i].New {
				t.Errorf("%s: the update is over, and site %d holds %s", arch, i, got.Format(s.Len))
			}
		}
	}
}
