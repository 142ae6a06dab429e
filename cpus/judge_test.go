// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// TestWrongInstruction: a handler acts as the site did before its update or as it does
// after it, and nothing else; another target is another call. What was found must be the
// site's, whatever is published; who skips acts as nothing that was found.
func TestWrongInstruction(t *testing.T) {
	for _, arch := range []string{"x86_64", "arm64"} {
		nop, unknown := isa.Insn{Kind: isa.Nop}, isa.Insn{}
		call := func(f *fixture, by int) isa.Insn {
			return isa.Insn{Kind: isa.Call, Target: f.code.Entry + records.Addr(4096*by)}
		}
		for _, c := range []struct {
			name  string
			act   func(f *fixture) isa.Insn
			skips bool
			wrong bool
		}{
			{"old", func(*fixture) isa.Insn { return nop }, false, false},
			{"new", func(f *fixture) isa.Insn { return call(f, 0) }, false, false},
			{"another target", func(f *fixture) isa.Insn { return call(f, 1) }, false, true},
			{"nothing that is known", func(*fixture) isa.Insn { return unknown }, false, true},
			{"skipped", func(f *fixture) isa.Insn { return call(f, 1) }, true, false},
		} {
			h := &oneHandler{}
			f := newFixture(t, arch, 1, busy(1), h, Weak)
			if c.skips {
				f.code.Path = f.code.Path.With(HandlerSkips)
			}
			h.at, h.act = f.code.Sites[0], c.act(f)
			f.Begin(0, Change{From: f.off[0], To: f.on[0]})
			f.Store(0, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
			cpu, pad := CPU{Synced: f.Seq(), Task: Task{Phase: Searching}}, NewScratchpad()
			Step(&cpu, f.code, f.Machine, &script{}, pad)
			if pad.Found != c.wrong || pad.Found && pad.Violation.Property != WrongInstruction {
				t.Errorf("%s, %s: %v", arch, c.name, pad.Violation)
			}
		}
	}
}
