// SPDX-License-Identifier: Apache-2.0

package promela

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/museum"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

// everything is what the checker leaves out unless it is told otherwise.
var everything = explore.Reductions{Symmetry: true, Sites: true, Order: true}

// comparison holds Spin's verdicts against the checker's. Models that are the same
// but for their titles are asked about once.
type comparison struct {
	mu    sync.Mutex
	known map[string]*answer
	agree map[string]int // by verdict
}

// answer is what Spin says of a model.
type answer struct {
	once  sync.Once
	first []cpus.Property // what it finds first
	all   []cpus.Property // everything, where the first is not what the checker found
}

func newComparison(t *testing.T) *comparison {
	c := &comparison{known: map[string]*answer{}, agree: map[string]int{}}
	t.Cleanup(func() {
		if !t.Failed() {
			t.Logf("%d different models; both searches say: %v", len(c.known), c.agree)
		}
	})
	return c
}

// compare asks both. They look in different orders: where several properties can
// break, the one that the checker found must be among those that Spin can find.
func (c *comparison) compare(t *testing.T, m *explore.Model) {
	t.Helper()
	want := verdict(t, m)
	text := exported(t, m)
	_, rules, _ := bytes.Cut(text, []byte("*/"))
	c.mu.Lock()
	key := fmt.Sprintf("%s %s", want, rules)
	if c.known[key] == nil {
		c.known[key] = &answer{}
	}
	a := c.known[key]
	c.mu.Unlock()
	a.once.Do(func() { a.first, a.all = ask(t, text, want) })
	if disagree(want, a.first, a.all) {
		t.Errorf("Spin finds %q, of %q altogether; the checker %q", a.first, a.all, want)
	}
	c.mu.Lock()
	c.agree[cmp.Or(string(want), string(explore.Safe))]++
	c.mu.Unlock()
}

// disagree tells whether one search finds what the other one does not.
func disagree(want cpus.Property, first, all []cpus.Property) bool {
	if want == "" || len(first) == 0 {
		return want != "" || len(first) > 0
	}
	return first[0] != want && !slices.Contains(all, want)
}

// verdict is the checker's: what is broken, "" for nothing.
func verdict(t testing.TB, m *explore.Model) cpus.Property {
	t.Helper()
	r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: everything, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Violation != nil {
		return r.Violation.Property
	}
	return ""
}

// ask runs Spin's search up to the first error; and to the end where that is not
// what is wanted, but for dead ends, which every error leaves behind.
func ask(t testing.TB, text []byte, want cpus.Property) (first, all []cpus.Property) {
	t.Helper()
	dir := build(t, text, quickly()...)
	first = broken(t, command(t, dir, "./pan", "-n", "-m100000", "-w18"))
	if want != "" && len(first) > 0 && first[0] != want {
		all = broken(t, command(t, dir, "./pan", "-n", "-m100000", "-w18", "-c0", "-E"))
	}
	return first, all
}

// eachMutation calls f with a protocol as it is and with every defect in turn.
func eachMutation(t *testing.T, arch, protocol string, ncpus, sites int, fetch cpus.Fetch,
	f func(name string, s explore.Setup)) {
	s := setup(t, arch, protocol, "", ncpus, sites)
	s.Fetch = fetch
	for _, mutation := range append([]poke.Mutation{{}}, s.Protocol.Mutations(shape(t, s))...) {
		s := s
		s.Mutation = mutation
		switch {
		case mutation.Filling == poke.AsQueued: // what nobody sorts is searched by halves
			s.Descending, s.Lookup = true, int3.Vector
		case mutation.Filling == poke.Shifted: // Promela is not asked what handlers act as; see TestActsWrong
			continue
		case mutation.Overfull:
			s.Buffer = sched.Buffer{Slots: 1}
		}
		f(fmt.Sprintf("%s/%s/%s/%s/cpus=%d", arch, protocol, mutation.Name, s.Fetch, ncpus), s)
	}
}

// TestSpinAgrees: two searches, in two languages, of every defect of every
// protocol; with a third CPU, so that two of them are equal, only where fetches
// are weakest.
func TestSpinAgrees(t *testing.T) {
	needSpin(t)
	c := newComparison(t)
	try := func(name string, s explore.Setup) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.compare(t, model(t, s))
		})
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, fetch := range cpus.Fetches() {
				eachMutation(t, arch, protocol, 2, 2, fetch, try)
			}
			eachMutation(t, arch, protocol, 3, 1, cpus.Weak, try)
		}
	}
}

// TestSpinAsDocumented builds and runs models as their first lines say.
func TestSpinAsDocumented(t *testing.T) {
	needSpin(t)
	for mutation, want := range map[string]cpus.Property{"": "", "drop-sync-1": cpus.TornFetch} {
		m := model(t, setup(t, "x86_64", "breakpoint", mutation, 2, 1))
		dir := build(t, exported(t, m), "gcc", "-O2")
		if got := broken(t, command(t, dir, "./pan", "-m1000000")); len(got) > 0 && got[0] != want || len(got) == 0 &&
			want != "" {
			t.Errorf("%s: Spin finds %q, want %q", mutation, got, want)
		}
	}
}

// TestSpinAgreesOnVariants: what handlers search and how they are counted, more
// CPUs, and one.
func TestSpinAgreesOnVariants(t *testing.T) {
	needSpin(t)
	c := newComparison(t)
	try := func(name string, s explore.Setup) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.compare(t, model(t, s))
		})
	}
	for _, mutation := range []string{"", "early-release", "drop-sync-3-no-recheck"} {
		for refs := range int3.RefsNames() {
			s := setup(t, "x86_64", "breakpoint", mutation, 3, 1)
			s.Refs = int3.Refs(refs)
			try("refs/"+s.Refs.String()+"/"+mutation, s)
		}
	}
	for _, arch := range cpus.ArchNames() {
		try(arch+"/one-cpu", setup(t, arch, "native", "", 1, 1))
		try(arch+"/three-cpus", setup(t, arch, "stop-machine", "", 3, 1))
	}
	fenced := setup(t, "x86_64", "breakpoint", "", 2, 1) // where no store waits for the fence
	var err error
	if fenced.Protocol, err = poke.ParseProtocol("fenced.plan", []byte(fencedPlan)); err != nil {
		t.Fatal(err)
	}
	try("fence", fenced)
	s := setup(t, "x86_64", "breakpoint", "", 2, 2)
	s.Descending, s.Buffer = true, sched.Buffer{Slots: 1}
	try("batches-of-one", s)
}

// TestSpinAgreesOnBugs: bugs of real kernels and their fixes, as far as they can
// be said in Promela.
func TestSpinAgreesOnBugs(t *testing.T) {
	needSpin(t)
	c := newComparison(t)
	said := 0
	for _, b := range museum.All() {
		for _, fixed := range []bool{false, true} {
			m, err := b.Model(fixed)
			if err != nil {
				t.Fatal(err)
			}
			if supported(m) != nil {
				continue
			}
			said++
			t.Run(fmt.Sprintf("%s/fixed=%v", b.Name, fixed), func(t *testing.T) {
				t.Parallel()
				c.compare(t, m)
			})
		}
	}
	if said < 4 {
		t.Errorf("only %d exhibits can be said in Promela", said)
	}
}

// fencedPlan has a fence on every architecture.
const fencedPlan = `name: fenced
every batch:
    Publish
    Write breakpoint
    Fence
    Sync 1
    Write tail
    Sync 2
    Write head
    Sync 3
    Unpublish
    WaitHandlers
`
