// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
)

// solver is an installed one.
func solver(t *testing.T, name string) *Solver {
	t.Helper()
	s, err := NewSolver(name)
	if err != nil {
		t.Skip(err)
	}
	return s
}

// TestCertificate: z3 refutes every obligation of x86_64's protocol, and none of them is
// empty: without its goal each can be satisfied, or its step can never be made, and the
// views say so too.
func TestCertificate(t *testing.T) {
	z3 := solver(t, "z3")
	archs, protocols := []string{"arm64"}, []string{"word"}
	if *long {
		archs, protocols = cpus.ArchNames(), []string{"stop-machine", "breakpoint", "native"}
	}
	for _, arch := range archs {
		for _, protocol := range protocols {
			p := closed(t, setup(t, arch, protocol, ""))
			if !p.Closed() {
				continue
			}
			n, open, err := p.Certify(context.Background(), z3)
			if err != nil || len(open) > 0 || n < 20 {
				t.Errorf("%s %s: %d obligations, open %v, error %v", arch, protocol, n, open, err)
			}
			for _, o := range p.Obligations(false) {
				got, err := z3.decide(context.Background(), o.script(false))
				if err != nil {
					t.Fatal(err)
				}
				if want := map[bool]string{true: "sat", false: "unsat"}[o.Fires]; got != want {
					t.Errorf("%s %s: %s without its goal: %s, want %s", arch, protocol, o.Name, got, want)
				}
			}
		}
	}
}

// TestMutationsBreakOneObligation: of a protocol with a defect the solver refutes all
// but the obligations of the properties that the views break.
func TestMutationsBreakOneObligation(t *testing.T) {
	z3 := solver(t, "z3")
	for _, c := range []struct{ arch, protocol, mutation string }{
		{"x86_64", "stop-machine", "no-stop"}, {"arm64", "native", "misaligned-literal"}, {"arm64", "native", "no-grace-period"},
		{"x86_64", "native", "drop-sync-1"}, {"x86_64", "native", "drop-sync-3"},
		{"x86_64", "native", "overfull-batch"}, {"x86_64", "native", "early-release"}, {"x86_64", "native", "late-publish"},
		{"riscv64", "native", "drop-sync-2"},
	} {
		if c.mutation != "no-grace-period" && c.mutation != "no-stop" && !*long {
			continue
		}
		p := closed(t, setup(t, c.arch, c.protocol, c.mutation))
		_, list, err := p.Certify(context.Background(), z3)
		if err != nil {
			t.Fatal(err)
		}
		var open, want []string
		for _, o := range list {
			open = append(open, o.String())
		}
		for _, b := range p.Broken {
			want = append(want, "never-"+slug(string(b.Property))+`: z3 says "sat"`)
		}
		slices.Sort(open)
		slices.Sort(want)
		if !slices.Equal(open, want) || len(want) == 0 {
			t.Errorf("%v: not refuted: %s; want %s", c, strings.Join(open, "; "), strings.Join(want, "; "))
		}
	}
}
