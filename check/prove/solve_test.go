// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
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

// certified are the certificates that a solver is asked about: one of each architecture,
// or of every protocol that is proved there.
func certified(t *testing.T, f func(arch, protocol string, p *Proof)) {
	protocols := []string{"stop-machine"}
	if *long {
		protocols = poke.Names()
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range protocols {
			if p := closed(t, setup(t, arch, protocol, "")); p.Closed() {
				f(arch, protocol, p)
			}
		}
	}
}

// TestCertificate: z3 refutes every obligation.
func TestCertificate(t *testing.T) {
	z3 := solver(t, "z3")
	certified(t, func(arch, protocol string, p *Proof) {
		n, open, err := p.Certify(context.Background(), z3)
		if err != nil || len(open) > 0 || n < 20 {
			t.Errorf("%s %s: %d obligations, open %v, error %v", arch, protocol, n, open, err)
		}
	})
}

// TestNoneIsEmpty: without its goal each obligation can be satisfied, or its step can
// never be made, and the views say so too.
func TestNoneIsEmpty(t *testing.T) {
	z3 := solver(t, "z3")
	certified(t, func(arch, protocol string, p *Proof) {
		list := p.Obligations(false)
		answers, err := z3.answers(context.Background(), list, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range list {
			if want := map[bool]string{true: "sat", false: "unsat"}[o.Fires]; answers[i] != want {
				t.Errorf("%s %s: %s without its goal: %s, want %s", arch, protocol, o.Name, answers[i], want)
			}
		}
	})
}

// TestNative: both solvers refute every obligation of what each architecture's kernel does.
func TestNative(t *testing.T) {
	if !*long && !*both {
		t.Skip("only with -both or -long")
	}
	for _, name := range []string{"z3", "cvc5"} {
		s := solver(t, name)
		for _, arch := range cpus.ArchNames() {
			n, open, err := closed(t, setup(t, arch, poke.Native, "")).Certify(context.Background(), s)
			if err != nil || len(open) > 0 || n < 20 {
				t.Errorf("%s, %s: %d obligations, open %v, error %v", name, arch, n, open, err)
			}
		}
	}
}

// TestMutationsBreakOneObligation: of a protocol with a defect the solver refutes all
// but the obligations of the properties that the views break.
func TestMutationsBreakOneObligation(t *testing.T) {
	z3 := solver(t, "z3")
	for _, c := range []struct{ arch, protocol, mutation string }{
		{"x86_64", "stop-machine", "no-stop"},
		{"arm64", "native", "misaligned-literal"}, {"arm64", "native", "no-grace-period"},
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

// TestOneViewTooManyBreaksItsObligation: a view from which a step breaks a property makes the
// obligation of that name fail, be it one that CPUs of the protocol never come near.
func TestOneViewTooManyBreaksItsObligation(t *testing.T) {
	z3 := solver(t, "z3")
	for arch, names := range map[string][]cpus.Property{
		"x86_64": {cpus.UnhandledBreakpoint, cpus.TornFetch, cpus.StaleAfterCompletion, cpus.UseAfterFree, cpus.TornLiteral,
			cpus.BrokenSite, cpus.Conservation, countOverwritten},
		"arm64": {cpus.LostCall, cpus.StaleAfterCompletion, cpus.UseAfterFree, cpus.TornLiteral, cpus.BrokenSite,
			cpus.Conservation},
	} {
		c := closed(t, setup(t, arch, poke.Native, "")).closure
		_, broken := c.allSteps()
		var stated []cpus.Property
		for _, n := range broken {
			if len(n.branches) == 0 {
				continue
			}
			stated = append(stated, cpus.Property(n.name))
			v := c.views[len(c.views)/2]
			for _, w := range n.branches[0].when {
				v[w.any[0].attr] = w.any[0].in.list(maxValues)[0]
			}
			more := *c
			more.views = append(slices.Clone(c.views), v)
			list := slices.DeleteFunc(more.obligations(ground), func(o Obligation) bool { return o.Name != "never-"+n.name })
			open, err := z3.refute(t.Context(), list)
			if err != nil || len(open) != 1 || open[0].Answer != "sat" {
				t.Errorf("%s, with a view that breaks %s: open %v, error %v", arch, n.name, open, err)
			}
		}
		slices.Sort(stated)
		if slices.Sort(names); !slices.Equal(stated, names) {
			t.Errorf("%s: some state breaks %v, want %v", arch, stated, names)
		}
	}
}
