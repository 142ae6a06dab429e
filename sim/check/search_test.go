package check

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// setup is a protocol on a small machine.
func setup(t testing.TB, arch, protocol, mutation string, ncpus, sites int) Setup {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Arch: a, Protocol: poke.Named(protocol, a.Traits()), Sites: sites, Fetch: cpus.Weak, Buffer: sched.Dynamic, Lookup: int3.BTree}
	for range ncpus {
		s.Roles = append(s.Roles, cpus.Busy)
	}
	if mutation != "" {
		site, err := a.Site(firstSite, s.Protocol.Layout)
		if err != nil {
			t.Fatal(err)
		}
		if s.Mutation, err = s.Protocol.Mutation(mutation, poke.Shape{Traits: a.Traits(), Len: int(site.Len), Detach: true}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func explore(t testing.TB, s Setup, o Options) *Result {
	t.Helper()
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Explore(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScratch(t *testing.T) {
	all := Reductions{Symmetry: true, Order: true}
	for _, c := range []struct {
		arch, protocol, mutation string
		cpus, sites              int
		r                        Reductions
	}{
		{"x86_64", "native", "", 2, 1, Reductions{}},
		{"x86_64", "native", "", 2, 1, all},
		{"x86_64", "native", "", 2, 2, Reductions{}},
		{"x86_64", "native", "", 2, 2, all},
		{"x86_64", "native", "", 3, 1, Reductions{}},
		{"x86_64", "native", "", 3, 1, all},
		{"x86_64", "native", "drop-sync-1", 2, 1, Reductions{}},
		{"x86_64", "native", "drop-sync-1", 2, 1, all},
		{"x86_64", "native", "no-grace-period", 2, 1, all},
		{"arm64", "native", "", 2, 2, Reductions{}},
		{"arm64", "native", "", 2, 2, all},
		{"riscv64", "native", "", 2, 2, Reductions{}},
		{"riscv64", "native", "", 2, 2, all},
		{"x86_64", "native", "", 3, 2, all},
	} {
		start := time.Now()
		r := explore(t, setup(t, c.arch, c.protocol, c.mutation, c.cpus, c.sites), Options{Reduce: c.r})
		fmt.Println(c, r.Verdict, r.Depth, r.States, r.Transitions, time.Since(start), r.Memory)
		if r.Violation != nil {
			fmt.Println(r.Violation)
			fmt.Println(r.Trace.Explain())
		}
	}
}
