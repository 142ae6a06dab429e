// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"testing"

	"github.com/textpoke/textpoke/cpus/isa"
)

// TestProbed: a breakpoint that is somebody else's is no violation, and nobody
// goes back to it; at any other site it is.
func TestProbed(t *testing.T) {
	for _, arch := range archNames {
		f := newFixture(t, arch, 2, busy(1), noHandler{}, Weak)
		f.code.Path = f.code.Path.With(MissFatal)
		f.code.Probed = 1 << 1
		for site := range 2 {
			f.Store(site, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
		}
		for site, want := range []Property{UnhandledBreakpoint, ""} {
			c, pad := CPU{Synced: f.Seq()}, NewScratchpad()
			for steps := 0; !pad.Found && (steps == 0 || c.Phase != Boundary || c.Polled()); steps++ {
				Step(&c, f.code, f.Machine, &script{answers: []int{site}}, pad)
				if steps > 20 {
					t.Fatalf("%s: site %d: no end of it", arch, site)
				}
			}
			if pad.Found != (want != "") || pad.Found && pad.Violation.Property != want {
				t.Errorf("%s: site %d: violation %v, want %q", arch, site, pad.Violation, want)
			}
		}
	}
}

// TestApart: the ops is loaded before the site is fetched. The function at Entry
// takes any ops, another one only its own; behind a breakpoint too.
func TestApart(t *testing.T) {
	const arch = "arm64"
	for _, c := range []struct {
		name    string
		ops     func(own uint64) uint64 // that is loaded
		entry   bool                    // the site calls Entry
		trapped bool                    // a handler acts as the call
		want    Property
	}{
		{"its own", func(own uint64) uint64 { return own }, false, false, ""},
		{"another one's", func(uint64) uint64 { return testTracer }, false, false, MismatchedOps},
		{"any one's", func(uint64) uint64 { return testTracer }, true, false, ""},
		{"its own, trapped", func(own uint64) uint64 { return own }, false, true, ""},
		{"another one's, trapped", func(uint64) uint64 { return testTracer }, false, true, MismatchedOps},
	} {
		h := &oneHandler{}
		f := newFixture(t, arch, 1, busy(1), h, Weak)
		f.code.Path = f.code.Path.With(SiteApart)
		at := f.code.Sites[0]
		target := f.code.Entry + 4096
		if c.entry {
			target = f.code.Entry
		}
		call, _, err := f.code.Arch.Enabled(isa.Site{Addr: at, Len: uint8(f.code.Len)}, isa.Destination{Target: target,
			Entry: f.code.Entry})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.AddOps(uint64(f.code.Entry + 4096)); err != nil {
			t.Fatal(err)
		}
		f.StoreLiteral(0, c.ops(uint64(target)))
		cpu, pad := CPU{Synced: 1}, NewScratchpad()
		f.steps(&cpu, &script{}, pad, 2) // looks, and loads
		if cpu.Phase != Again || cpu.Ops != c.ops(uint64(target)) {
			t.Fatalf("%s: %s with ops %#x", c.name, cpu.Phase, cpu.Ops)
		}
		// What the literal names from now on makes no difference.
		f.StoreLiteral(0, testNop)
		f.Store(0, 0, f.code.Len, call)
		if c.trapped {
			h.at, h.act = at, isa.Insn{Kind: isa.Call, Target: target}
			f.Begin(0, Change{f.Peek(0), call})
			f.Store(0, 0, f.code.Traits.BreakpointLen, f.code.Arch.Breakpoint())
		}
		for steps := 0; !pad.Found && cpu.Phase != Boundary; steps++ {
			if Step(&cpu, f.code, f.Machine, &script{}, pad); steps > 20 {
				t.Fatalf("%s: no end of it", c.name)
			}
		}
		if pad.Found != (c.want != "") || pad.Found && pad.Violation.Property != c.want {
			t.Errorf("%s: violation %v, want %q", c.name, pad.Violation, c.want)
		}
	}
}
