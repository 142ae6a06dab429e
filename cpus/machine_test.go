// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus/isa"
)

// started is a machine with its CPUs running, stopped when the test ends.
func started(t testing.TB, arch string, sites int, roles []Role) *fixture {
	f := newFixture(t, arch, sites, roles, noHandler{}, Weak)
	f.Start()
	t.Cleanup(f.Stop)
	return f
}

func occupy(t testing.TB, m *Machine, cpu int) *Lease {
	t.Helper()
	l, err := m.Occupy(t.Context(), cpu)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// stopMachine stops the machine and waits until it stands still.
func stopMachine(s *Sender, l *Lease) {
	for !s.StopMachine(l.CPU(), false) {
		l.Yield()
	}
	for !s.Stopped() {
		l.Yield()
	}
}

// TestRoundsAreConserved: rounds x (online - 1), whatever the CPUs do.
func TestRoundsAreConserved(t *testing.T) {
	roles, err := ParseRoles("busy=3,idle=2,isolated=2,irqsoff=2,offline=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range archNames {
		t.Run(arch, func(t *testing.T) {
			f := started(t, arch, 20, roles)
			l := occupy(t, f.Machine, 0)
			const rounds = 200
			for range rounds {
				f.Sender(0).Send(0, Sync, false)
				f.Sender(0).Wait(l)
			}
			l.Release()
			c := f.Ledger.Read()
			if got, want := c.TotalTaken(Sync), uint64(rounds*8); got != want {
				t.Errorf("%d interrupts, want %d rounds x 8 CPUs", got, rounds)
			}
			for cpu, role := range roles {
				want := uint64(rounds)
				if cpu == 0 || role == Offline {
					want = 0
				}
				if got := c.Taken[cpu][Sync]; got != want {
					t.Errorf("cpu %d (%s): %d interrupts, want %d", cpu, role, got, want)
				}
			}
			if c.Rounds[0][Sync] != rounds {
				t.Errorf("cpu 0 sent %d rounds, want %d", c.Rounds[0][Sync], rounds)
			}
			if cause, ok := c.Conserved(); !ok {
				t.Errorf("cause %s is not conserved", cause)
			}
		})
	}
}

// TestSyncedCPUsFetchAfresh: after a round nobody executes old text.
func TestSyncedCPUsFetchAfresh(t *testing.T) {
	for _, arch := range archNames {
		f := started(t, arch, 4, busy(4))
		f.SetOps(uint64(f.code.Entry), CalledTracer)
		l := occupy(t, f.Machine, 0)
		for i := range 200 {
			text, ops := f.on, uint64(testTracer)
			if i%2 == 1 {
				text, ops = f.off, testNop
			}
			for s := range 4 {
				f.Unsettle(s)
				f.StoreLiteral(s, ops)
				f.Store(s, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
			}
			f.Sender(0).Send(0, Sync, false)
			f.Sender(0).Wait(l)
			for s := range 4 {
				f.Store(s, 0, f.code.Len, text[s])
			}
			f.Sender(0).Send(0, Sync, false)
			f.Sender(0).Wait(l)
			l.Sync()
			for s := range 4 {
				f.Settle(s, text[s])
			}
		}
		l.Release()
		_, first := f.Violations()
		for _, v := range first {
			// Nothing is published here, so that traps are unhandled; what
			// this test is about is what comes after completion.
			if v.Property == StaleAfterCompletion || v.Property == LostCall {
				t.Errorf("%s: %v", arch, v)
			}
		}
	}
}

// TestHotplugUnderRounds: CPUs go and come while two senders send rounds.
func TestHotplugUnderRounds(t *testing.T) {
	roles, _ := ParseRoles("busy=4,idle=1,isolated=1")
	f := started(t, "riscv64", 20, roles)
	var group sync.WaitGroup
	for id := range 2 {
		group.Go(func() {
			for range 300 {
				l, err := f.Occupy(t.Context(), id)
				if err != nil { // it is unplugged
					continue
				}
				f.Sender(id).Send(id, Sync, false)
				f.Sender(id).Wait(l)
				l.Release()
			}
		})
	}
	stop := make(chan struct{})
	var plugger sync.WaitGroup
	plugger.Go(func() {
		rng := rand.New(rand.NewPCG(1, 1))
		for {
			select {
			case <-stop:
				return
			default:
			}
			cpu := rng.IntN(6)
			if f.Online(cpu) {
				_ = f.Unplug(t.Context(), cpu) // the last one may not go
			} else if err := f.Plug(t.Context(), cpu); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	close(stop)
	plugger.Wait()
	c := f.Ledger.Read()
	if cause, ok := c.Conserved(); !ok {
		t.Errorf("cause %s: taken %d, sent %d", cause, c.TotalTaken(cause), c.Sent[cause])
	}
}

// TestStopMachine: nobody executes anything between stop and resume, and rounds
// get through where the architecture says so.
func TestStopMachine(t *testing.T) {
	roles, _ := ParseRoles("busy=3,idle=1,isolated=1,irqsoff=1")
	for _, arch := range archNames {
		t.Run(arch, func(t *testing.T) {
			f := started(t, arch, 20, roles)
			l := occupy(t, f.Machine, 0)
			s := f.Sender(0)
			for range 20 {
				stopMachine(s, l)
				before := begun(f)
				time.Sleep(100 * time.Microsecond)
				f.Store(1, 0, f.code.Len, f.on[1])
				if f.code.Traits.MaskedRounds {
					s.Send(0, Sync, false)
					s.Wait(l)
				}
				f.Store(1, 0, f.code.Len, f.off[1])
				if after := begun(f); after != before {
					t.Fatalf("CPUs began %d calls while they stood still", after-before)
				}
				l.Sync()
				s.ResumeMachine()
			}
			l.Release()
			c := f.Ledger.Read()
			if got := c.TotalTaken(Stop); got != 20*5 {
				t.Errorf("%d stoppers woken, want 20 x 5", got)
			}
			if n, first := f.Violations(); n > 0 {
				t.Errorf("violations: %v", first)
			}
		})
	}
}

// begun counts calls of CPUs that stand still: their goroutines only look for
// the resume, so that reading is safe.
func begun(f *fixture) (n uint64) {
	for _, r := range f.runners[1:] {
		n += r.pad.begun
	}
	return n
}

// TestRoundsInsideStopMachineUnderHotplug: somebody who waits to unplug a CPU
// must not come between the two.
func TestRoundsInsideStopMachineUnderHotplug(t *testing.T) {
	f := started(t, "riscv64", 4, busy(3))
	var plugger sync.WaitGroup
	for range 20 {
		l := occupy(t, f.Machine, 0)
		s := f.Sender(0)
		stopMachine(s, l)
		plugger.Go(func() {
			if err := f.Unplug(t.Context(), 2); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Millisecond) // it waits by now
		s.Send(0, Sync, false)
		s.Wait(l)
		s.ResumeMachine()
		l.Release()
		plugger.Wait()
		if err := f.Plug(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStopMachineIsExclusive: of two who want every CPU to stand still the second
// stands still for the first.
func TestStopMachineIsExclusive(t *testing.T) {
	f := started(t, "x86_64", 1, busy(4))
	var stops sync.WaitGroup
	var holding atomic.Int32
	for id := range 2 {
		l := occupy(t, f.Machine, id)
		stops.Go(func() {
			defer l.Release()
			s := f.Sender(id)
			for range 300 {
				stopMachine(s, l)
				if holding.Add(1) != 1 {
					t.Error("two hold the machine")
				}
				runtime.Gosched()
				holding.Add(-1)
				s.ResumeMachine()
			}
		})
	}
	stops.Wait()
	if cause, ok := f.Ledger.Read().Conserved(); !ok {
		t.Errorf("cause %s is not conserved", cause)
	}
}

// TestUnplugKeepsOneHouse: some CPU must remain that patchers may run on.
func TestUnplugKeepsOneHouse(t *testing.T) {
	roles, _ := ParseRoles("busy=2,isolated=2")
	f := started(t, "x86_64", 2, roles)
	ctx := t.Context()
	if err := f.Unplug(ctx, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Unplug(ctx, 1); err == nil {
		t.Error("the last CPU for patchers was unplugged")
	}
	if err := f.Unplug(ctx, 0); err == nil {
		t.Error("an offline CPU was unplugged")
	}
	if err := f.Plug(ctx, 1); err == nil {
		t.Error("an online CPU was plugged in")
	}
	if err := f.Unplug(ctx, 2); err != nil {
		t.Errorf("an isolated CPU: %v", err)
	}
	if _, err := f.Occupy(ctx, 0); err == nil {
		t.Error("an offline CPU was occupied")
	}
	if err := f.Plug(ctx, 0); err != nil {
		t.Fatal(err)
	}
	occupy(t, f.Machine, 0).Release()
}

// TestOccupyEndsWithItsContext while another task holds the CPU.
func TestOccupyEndsWithItsContext(t *testing.T) {
	f := started(t, "arm64", 2, busy(1))
	l := occupy(t, f.Machine, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Occupy(ctx, 0); err == nil {
		t.Error("occupied a CPU that is taken")
	}
	l.Release()
}

// TestCallsAreConserved: every call that was begun ended, once.
func TestCallsAreConserved(t *testing.T) {
	roles, _ := ParseRoles("busy=2,irqsoff=1,idle=1")
	f := started(t, "x86_64", 20, roles)
	f.SetOps(uint64(f.code.Entry), CalledTracer)
	l := occupy(t, f.Machine, 0)
	for s := range 10 {
		f.Store(s, 0, 5, f.on[s]) // tears, and that must be counted too
	}
	f.Sender(0).Send(0, Sync, false)
	f.Sender(0).Wait(l)
	l.Release()
	for range 20 {
		tallies, err := f.Tallies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for cpu, c := range tallies {
			if c[Begun] != c.Calls()+c[Broken] {
				t.Errorf("cpu %d: %d begun, %d ended", cpu, c[Begun], c.Calls()+c[Broken])
			}
		}
	}
}

func TestNewMachineRefuses(t *testing.T) {
	arch, _ := ParseArch("x86_64")
	code := &Code{Arch: arch, Traits: arch.Traits(), Len: 5}
	initial := func(int) isa.Text { return 0 }
	if _, err := NewMachine(Config{Code: code, Roles: busy(1), Initial: initial}); err == nil {
		t.Error("a machine without sites")
	}
	code.Sites = append(code.Sites, 0x1000)
	for _, roles := range [][]Role{nil, {Isolated}, {Offline}, make([]Role, MaxCPUs+1)} {
		if _, err := NewMachine(Config{Code: code, Roles: roles, Initial: initial}); err == nil {
			t.Errorf("%d CPUs, first roles %v: accepted", len(roles), roles[:min(len(roles), 2)])
		}
	}
}

// TestVersionsAreForgottenWithoutRounds: where no round ever comes, ticks are
// enough, and sleepers hold nothing back. A busy machine may take its time.
func TestVersionsAreForgottenWithoutRounds(t *testing.T) {
	f := started(t, "arm64", 1, []Role{Busy, Busy, Idle, Isolated})
	l := occupy(t, f.Machine, 0)
	defer l.Release()
	stores := 0
	for end := time.Now().Add(3 * time.Minute); stores < 1000 || f.versions(0) > stores/10; stores++ {
		if time.Now().After(end) {
			t.Fatalf("after %d stores %d versions are held", stores, f.versions(0))
		}
		f.Store(0, 0, f.code.Len, f.off[0])
		l.Sync()
		time.Sleep(10 * time.Microsecond)
	}
}
