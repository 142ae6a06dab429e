// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// runs makes steps until a call is over or something is broken.
func (f *fixture) runs(t *testing.T, c *CPU, pad *Scratchpad) (last Event) {
	t.Helper()
	for steps := 0; ; steps++ {
		last = Step(c, f.code, f.Machine, &script{}, pad)
		if pad.Found || c.Phase == Boundary && !c.Polled() {
			return last
		}
		if steps > 20 {
			t.Fatal("no end of it")
		}
	}
}

// TestDirect: a site calls a trampoline itself, and nobody asks the table; or it
// calls the entry, which finds there whom to call, or nobody.
func TestDirect(t *testing.T) {
	for _, arch := range archNames {
		if arch == "riscv64" { // its sites reach the page of the entry only
			continue
		}
		for _, c := range []struct {
			name       string
			entry      bool // the site calls the entry
			trapped    bool // a handler acts as the call
			trampoline Outcome
			named      uint64 // by the table
			promised   bool
			event      Event
			want       Property
		}{
			{"itself, the table names nobody", false, false, CalledTracer, testNop, true, Traced, ""},
			{"itself, freed", false, false, CalledFreed, testTracer, false, Untraced, UseAfterFree},
			{"looked up", true, false, CalledFreed, testTracer, true, Traced, ""},
			{"looked up, trapped", true, true, CalledFreed, testTracer, false, Traced, ""},
			{"looked up in vain", true, false, CalledTracer, testNop, false, Untraced, ""},
			{"looked up in vain, promised", true, false, CalledTracer, testNop, true, Lost, LostCall},
			{"half of an address", true, false, CalledTracer, 0xffff_8000_3333_4444, false, Untraced, TornLiteral},
		} {
			h := &oneHandler{}
			f := newFixture(t, arch, 1, busy(1), h, Weak)
			f.code.Path = f.code.Path.With(SiteDirect)
			own := f.code.Entry + 4096
			if err := f.AddOps(uint64(own)); err != nil {
				t.Fatal(err)
			}
			f.SetOps(uint64(own), c.trampoline)
			f.SetOps(testTracer, CalledTracer)
			target := own
			if c.entry {
				target = f.code.Entry
			}
			call, _, err := f.code.Arch.Enabled(isa.Site{Addr: f.code.Sites[0], Len: uint8(f.code.Len)},
				isa.Destination{Target: target, Entry: f.code.Entry})
			if err != nil {
				t.Fatal(err)
			}
			f.Store(0, 0, f.code.Len, call)
			if c.trapped {
				h.at, h.act = f.code.Sites[0], isa.Insn{Kind: isa.Call, Target: target}
				f.Begin(0, Change{f.Peek(0), call})
				f.Store(0, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
			}
			if c.promised {
				f.Settle(0, call)
			}
			f.StoreLiteral(0, c.named)
			cpu, pad := CPU{Synced: f.Seq()}, NewScratchpad()
			event := f.runs(t, &cpu, pad)
			if event != c.event || pad.Found != (c.want != "") || pad.Found && pad.Violation.Property != c.want {
				t.Errorf("%s, %s: %s, violation %v, want %s and %q", arch, c.name, event, pad.Violation, c.event, c.want)
			}
		}
	}
}

// TestAlways: where a tracer is always there a call is lost by a site that is a
// nop, and by one that leads to nobody, without any promise; elsewhere by neither.
func TestAlways(t *testing.T) {
	for _, arch := range archNames {
		for _, always := range []bool{true, false} {
			for _, enabled := range []bool{true, false} {
				f := newFixture(t, arch, 1, busy(1), noHandler{}, Weak)
				f.code.Always, f.code.Path = always, f.code.Path.With(SiteDirect)
				if enabled { // and named is nobody
					f.Store(0, 0, f.code.Len, f.on[0])
				}
				cpu, pad := CPU{Synced: f.Seq()}, NewScratchpad()
				event := f.runs(t, &cpu, pad)
				want := Untraced
				if always {
					want = Lost
				}
				if event != want || pad.Found != always || always && pad.Violation.Property != LostCall {
					t.Errorf("%s, always %v, enabled %v: %s, violation %v", arch, always, enabled, event, pad.Violation)
				}
			}
		}
	}
}

// TestEntryMasked: between the ops and the function nothing is taken where the
// entry masks interrupts, unless rounds get through that; before the ops and behind
// the function everything is.
func TestEntryMasked(t *testing.T) {
	for _, arch := range archNames {
		for _, masks := range []bool{true, false} {
			f := newFixture(t, arch, 1, busy(2), noHandler{}, Weak)
			f.code.Path = f.code.Path.With(map[bool]Variant{false: SiteApart, true: SiteApartMasked}[masks])
			f.Store(0, 0, f.code.Len, f.on[0])
			f.StoreLiteral(0, uint64(f.code.Entry))
			cpu, pad := CPU{ID: 1, Synced: f.Seq()}, NewScratchpad()
			f.steps(&cpu, &script{}, pad, 2) // looks, and loads
			f.Sender(0).Send(0, Sync, false)
			Step(&cpu, f.code, f.Machine, &script{}, pad)
			taken := cpu.Phase == Interrupted
			if want := !masks || f.code.Traits.MaskedRounds; taken != want {
				t.Errorf("%s, masks %v: between the two a round is taken: %v, want %v", arch, masks, taken, want)
			}
			if taken {
				continue
			}
			f.steps(&cpu, &script{}, pad, 1)
			if cpu.Phase != Calling || pad.Found {
				t.Fatalf("%s: %s, %v", arch, cpu.Phase, pad.Violation)
			}
			if f.steps(&cpu, &script{}, pad, 1); cpu.Phase != Interrupted {
				t.Errorf("%s: %s behind the function, want the round taken", arch, cpu.Phase)
			}
		}
	}
}
