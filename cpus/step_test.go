// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

var archNames = []string{"x86_64", "arm64", "riscv64"}

// TestCalls follows single calls through disabled, enabled and patched sites.
func TestCalls(t *testing.T) {
	for _, arch := range archNames {
		t.Run(arch, func(t *testing.T) {
			h := &oneHandler{}
			f := newFixture(t, arch, 1, busy(1), h, Weak)
			c, pad := CPU{Synced: 1}, NewScratchpad()
			call := func(want ...Event) {
				t.Helper()
				var got []Event
				for begun := pad.begun; ; {
					e := Step(&c, f.code, f.Machine, &script{}, pad)
					if e != Nothing {
						got = append(got, e)
					}
					if c.Phase == Boundary && pad.begun > begun {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("events %v, want %v", got, want)
				}
				if pad.Found {
					t.Errorf("violation: %v", pad.Violation)
				}
			}
			fresh := func() { c.Synced = f.Seq() }

			call(Untraced)
			// Behind a breakpoint, acting as the new instruction.
			h.at, h.act = f.code.Sites[0], isa.Insn{Kind: isa.Call, Target: f.code.Entry}
			f.StoreLiteral(0, testTracer)
			f.Store(0, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
			fresh()
			call(Trap, Traced)
			h.act = isa.Insn{Kind: isa.Nop}
			call(Trap, Untraced)
			// Enabled.
			f.Store(0, 0, f.code.Len, f.on[0])
			fresh()
			call(Traced)
			if h.refs != 0 {
				t.Errorf("%d references are still held", h.refs)
			}
			// A stale branch to nop_ops is harmless where sites have literals.
			if f.code.Literals() {
				f.StoreLiteral(0, testNop)
				call(Untraced)
			}
		})
	}
}

// TestViolations breaks each property that a single CPU can see, by hand.
func TestViolations(t *testing.T) {
	type world struct {
		f *fixture
		c *CPU
	}
	for _, tt := range []struct {
		name, arch string
		prepare    func(w world)
		choose     []int
		want       Property
	}{
		{"new head with old tail", "x86_64", func(w world) {
			w.f.Store(0, 0, 5, w.f.on[0])
		}, []int{0, 0, 0, 1, 1, 1, 1}, TornFetch}, // site, base, five bytes
		{"old text after completion", "arm64", func(w world) {
			w.f.Store(0, 0, 4, w.f.on[0])
			w.f.Settle(0, w.f.on[0])
		}, []int{0, 1}, StaleAfterCompletion},
		{"breakpoint nobody owns", "riscv64", func(w world) {
			w.f.Store(0, 0, 4, w.f.bp[0])
			w.c.Synced = w.f.Seq()
		}, nil, UnhandledBreakpoint},
		{"half a pointer", "arm64", func(w world) {
			w.f.Store(0, 0, 4, w.f.on[0])
			w.c.Synced = w.f.Seq()
			w.f.StoreLiteral(0, testTracer&0xffffffff|testNop&^0xffffffff)
		}, nil, TornLiteral},
		{"released ops", "x86_64", func(w world) {
			w.f.Store(0, 0, 5, w.f.on[0])
			w.c.Synced = w.f.Seq()
			w.f.SetOps(uint64(w.f.code.Entry), CalledFreed)
		}, nil, UseAfterFree},
		{"nop_ops where a tracer was promised", "riscv64", func(w world) {
			w.f.Store(0, 0, 4, w.f.on[0])
			w.c.Synced = w.f.Seq()
			w.f.Settle(0, w.f.on[0])
		}, nil, LostCall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t, tt.arch, 1, busy(1), noHandler{}, Weak)
			c, pad := CPU{Synced: 1}, NewScratchpad()
			tt.prepare(world{f, &c})
			ch := &script{answers: tt.choose}
			for range 12 {
				Step(&c, f.code, f.Machine, ch, pad)
				if pad.Found {
					break
				}
			}
			if !pad.Found || pad.Violation.Property != tt.want {
				t.Errorf("violation %v, want %s", pad.Violation, tt.want)
			}
		})
	}
}

// TestRecheck: a breakpoint that has gone meanwhile is forgiven, unless the
// handler may not look again.
func TestRecheck(t *testing.T) {
	for _, never := range []bool{false, true} {
		f := newFixture(t, "x86_64", 1, busy(1), noHandler{}, Weak)
		if never {
			f.code.Path = f.code.Path.With(MissFatal)
		}
		f.Store(0, 0, 1, isa.TextOf(0xCC))
		f.Store(0, 0, 5, f.off[0])
		// This CPU saw the breakpoint: it synchronised between the stores.
		c, pad := CPU{Synced: 2}, NewScratchpad()
		events := []Event{}
		ch := &script{answers: []int{0, 1, 1, 1, 1, 1, 1}}
		for range 20 {
			if e := Step(&c, f.code, f.Machine, ch, pad); e != Nothing {
				events = append(events, e)
			}
			if c.Phase == Boundary && len(events) > 1 {
				break
			}
		}
		want := []Event{Trap, Miss, Untraced}
		if never {
			want = []Event{Trap, Miss, Broken}
		}
		if !slices.Equal(events, want) {
			t.Errorf("never %v: events %v, want %v", never, events, want)
		}
	}
}

// TestInterruptsWaitForBorders: a CPU takes an interrupt before the next
// instruction, not while a handler runs, and not while interrupts are masked,
// unless rounds get through masks.
func TestInterruptsWaitForBorders(t *testing.T) {
	for _, arch := range archNames {
		t.Run(arch, func(t *testing.T) {
			f := newFixture(t, arch, 1, busy(2), noHandler{}, Weak)
			c, pad := &f.runners[1].cpu, NewScratchpad()
			s := f.Sender(0)
			s.Send(0, Sync, false)
			c.Phase = Searching // inside a trap
			f.steps(c, &script{}, pad, 2)
			if s.Answered() {
				t.Error("answered inside a trap handler")
			}
			c.Phase, c.polled, c.Masked = Boundary, false, 2
			f.steps(c, &script{}, pad, 4)
			if got := s.Answered(); got != f.code.Traits.MaskedRounds {
				t.Errorf("masked: answered %v, want %v", got, f.code.Traits.MaskedRounds)
			}
			f.steps(c, &script{}, pad, 8)
			if !s.Answered() {
				t.Error("not answered though nothing is masked any more")
			}
			if c.Synced != f.Seq() {
				t.Errorf("synchronised at %d, the text is at %d", c.Synced, f.Seq())
			}
		})
	}
}

// TestGracePeriodWaitsForTrampolines: a CPU answers only between two calls.
func TestGracePeriodWaitsForTrampolines(t *testing.T) {
	f := newFixture(t, "x86_64", 1, busy(2), noHandler{}, Weak)
	f.Store(0, 0, 5, f.on[0])
	c, pad := &f.runners[1].cpu, NewScratchpad()
	c.Synced = f.Seq()
	f.steps(c, &script{}, pad, 2) // executes the call
	if c.Phase != Calling {
		t.Fatalf("phase %d, want Calling", c.Phase)
	}
	s := f.Sender(0)
	s.Send(0, Quiesce, false)
	for c.Phase != Boundary {
		if s.Answered() {
			t.Fatal("the grace period ended while the CPU was in a trampoline")
		}
		f.steps(c, &script{}, pad, 1)
	}
	f.steps(c, &script{}, pad, 10)
	if !s.Answered() {
		t.Error("the grace period never ends")
	}
	if n := f.Ledger.Read().TotalTaken(Sync); n != 0 {
		t.Errorf("a grace period counted as %d interrupts", n)
	}
}

// TestLeavingATrapSynchronises where the architecture says so, and nowhere else.
func TestLeavingATrapSynchronises(t *testing.T) {
	for _, arch := range archNames {
		f := newFixture(t, arch, 1, busy(1), noHandler{}, Weak)
		c, pad := CPU{Synced: 1, Task: Task{Phase: Returning}, Act: isa.Insn{Kind: isa.Nop}}, NewScratchpad()
		f.Store(0, 0, f.code.Len, f.on[0])
		f.steps(&c, &script{}, pad, 1)
		if got, want := c.Synced == f.Seq(), f.code.Traits.TrapSyncs; got != want {
			t.Errorf("%s: synchronised %v, want %v", arch, got, want)
		}
	}
}

// TestStopWaitsForTheCall: who is woken for stop_machine stands still between two
// calls, not inside one: its stopper is a task, and takes over where tasks give way.
func TestStopWaitsForTheCall(t *testing.T) {
	for _, phase := range []Phase{Again, Inside, Entered, Calling} {
		f := newFixture(t, "arm64", 1, busy(2), noHandler{}, Weak)
		c, pad := &f.runners[1].cpu, NewScratchpad()
		c.Phase, c.stop, c.Ops = phase, true, testTracer
		f.steps(c, &script{}, pad, 1)
		if c.Phase == Arriving {
			t.Errorf("phase %d: stands still in the middle of a call", phase)
		}
		c.Phase, c.polled = Boundary, false
		f.steps(c, &script{}, pad, 2)
		if c.Phase != Stopped {
			t.Errorf("phase %d: does not stand still between two calls", c.Phase)
		}
	}
}

// TestStepsAreDeterministic: the same answers lead to the same states.
func TestStepsAreDeterministic(t *testing.T) {
	for _, arch := range archNames {
		run := func() (sum []CPU) {
			f := newFixture(t, arch, 50, busy(1), noHandler{}, Weak)
			f.Store(3, 0, f.code.Len, f.on[3])
			c, pad, ch := CPU{Synced: 1, Role: IrqsOff}, NewScratchpad(), NewRandom(7, 7)
			for range 2000 {
				Step(&c, f.code, f.Machine, ch, pad)
				sum = append(sum, c)
			}
			return sum
		}
		if !slices.Equal(run(), run()) {
			t.Errorf("%s: two runs with the same seed differ", arch)
		}
	}
}

// TestStepDoesNotAllocate, with text at rest and with windows of versions.
func TestStepDoesNotAllocate(t *testing.T) {
	for _, arch := range archNames {
		h := &oneHandler{}
		f := newFixture(t, arch, 100, busy(1), h, Weak)
		h.at, h.act = f.code.Sites[5], isa.Insn{Kind: isa.Nop}
		for i := range 100 {
			f.Store(i, 0, f.code.Len, f.on[i])
		}
		f.Store(5, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
		f.SetOps(uint64(f.code.Entry), CalledTracer)
		f.StoreLiteral(5, testTracer)
		c, pad, ch := CPU{Synced: f.Seq()}, NewScratchpad(), NewRandom(1, 1)
		if n := testing.AllocsPerRun(5000, func() { Step(&c, f.code, f.Machine, ch, pad) }); n != 0 {
			t.Errorf("%s: %v allocations a step", arch, n)
		}
	}
}

// TestPromiseTakenBack: a disable reaches a site's literal and is taken back
// before it reaches the branch. The call that met nop_ops meanwhile was promised
// nothing, though the promise is about the same text again.
func TestPromiseTakenBack(t *testing.T) {
	f := newFixture(t, "riscv64", 1, busy(1), noHandler{}, Weak)
	f.Store(0, 0, f.code.Len, f.on[0])
	f.StoreLiteral(0, testTracer)
	f.Settle(0, f.on[0])
	c, ch, pad := CPU{Synced: f.Seq()}, &script{}, NewScratchpad()
	until := func(p Phase) {
		for range 8 {
			if c.Phase == p {
				return
			}
			f.steps(&c, ch, pad, 1)
		}
		t.Fatalf("in phase %d, not in %d", c.Phase, p)
	}
	until(Entered)
	f.Unsettle(0)
	f.StoreLiteral(0, testNop)
	until(Calling)
	f.StoreLiteral(0, testTracer)
	f.Settle(0, f.on[0])
	until(Doubting)
	if events := f.steps(&c, ch, pad, 1); pad.Found || len(events) != 1 || events[0] != Untraced {
		t.Errorf("events %v, violation %v", events, pad.Violation)
	}
}
