// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

var long = flag.Bool("long", false, "run slow tests")

// everything calls f with every protocol that an architecture has, sound and with
// every defect, in every fetch model.
func everything(t *testing.T, ncpus, sites int, f func(t *testing.T, name string, s Setup)) {
	t.Helper()
	eachSetup(t, ncpus, sites, func(name string, s Setup) { f(t, name, s) })
}

func eachSetup(t testing.TB, ncpus, sites int, f func(name string, s Setup)) {
	t.Helper()
	for _, arch := range cpus.ArchNames() {
		a, err := cpus.ParseArch(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, protocol := range poke.Names() {
			if protocol == poke.Native && arch != "riscv64" {
				continue // it is one of the others there
			}
			p := poke.Named(protocol, a.Traits())
			site, err := a.Site(firstSite, p.Layout)
			if err != nil {
				t.Fatal(err)
			}
			names := []string{""}
			for _, m := range p.Mutations(poke.Shape{Traits: a.Traits(), Len: int(site.Len), Detach: true}) {
				names = append(names, m.Name)
			}
			for _, mutation := range names {
				for _, fetch := range cpus.Fetches() {
					s := setup(t, arch, protocol, mutation, ncpus, sites)
					s.Fetch = fetch
					f(fmt.Sprintf("%s/%s/%s/%s", arch, protocol, mutation, fetch), s)
				}
			}
		}
	}
}

// TestTicksMakeNoDifference: timers that tick at any time make CPUs fetch afresh
// where interrupts do that, which leaves them fewer versions and never more. So a
// search can leave them out.
func TestTicksMakeNoDifference(t *testing.T) {
	more := 0
	everything(t, 2, 1, func(t *testing.T, name string, s Setup) {
		want := explore(t, s, Options{})
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		m.ticks = true
		got, err := Explore(t.Context(), m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Verdict != want.Verdict || got.Verdict == Unsafe && got.Depth != want.Depth {
			t.Errorf("%s: %s at %d with ticks, %s at %d without", name, got.Verdict, got.Depth, want.Verdict, want.Depth)
		}
		more += int(got.Transitions) - int(want.Transitions)
	})
	if more < 1000 {
		t.Errorf("%d transitions more with ticks than without: hardly anything ticked", more)
	}
}

// TestReductionsKeepVerdicts holds every reduction against the search that leaves
// nothing out: the same verdict for every protocol and defect, and the same depth
// and property where only equal CPUs are exchanged, the same places reached where it
// is safe.
func TestReductionsKeepVerdicts(t *testing.T) {
	each := []Reductions{{Symmetry: true}, {Sites: true}, {Symmetry: true, Sites: true}, {Order: true}, all, single}
	compareSome := func(t *testing.T, name string, s Setup, list []Reductions) {
		want := explore(t, s, Options{Workers: 1})
		for _, r := range list {
			got := explore(t, s, Options{Reduce: r, Workers: 1})
			if got.Verdict != want.Verdict {
				t.Errorf("%s: reduce %s: %s, want %s (%v)", name, r, got.Verdict, want.Verdict, want.Violation)
			}
			if got.Verdict == Unsafe && got.Depth != want.Depth {
				t.Errorf("%s: reduce %s: unsafe at depth %d, want %d", name, r, got.Depth, want.Depth)
			}
			if got.Verdict == Safe && !slices.Equal(got.Coverage.Never, want.Coverage.Never) {
				t.Errorf("%s: reduce %s: never reaches %q, want %q", name, r, got.Coverage.Never, want.Coverage.Never)
			}
			if got.States > want.States {
				t.Errorf("%s: reduce %s: %d states, more than %d without", name, r, got.States, want.States)
			}
		}
	}
	compare := func(t *testing.T, name string, s Setup) { compareSome(t, name, s, each) }
	once := func(t *testing.T, name string, s Setup) { compareSome(t, name, s, []Reductions{all, single}) }
	preempted := func(t *testing.T, name string, s Setup) {
		s.Preempt = true
		compare(t, name+"/preempt", s)
	}
	endless := func(t *testing.T, name string, s Setup) {
		s.Workload = Endless
		compare(t, name+"/endless", s)
	}
	together := func(t *testing.T, name string, s Setup) {
		s.Workload = Endless
		compareSome(t, name+"/endless", s, []Reductions{all, single})
	}
	weakly := func(f func(*testing.T, string, Setup)) func(*testing.T, string, Setup) {
		return func(t *testing.T, name string, s Setup) {
			if s.Fetch == cpus.Weak {
				f(t, name, s)
			}
		}
	}
	if testing.Short() {
		everything(t, 2, 1, weakly(compare))
		everything(t, 2, 1, weakly(endless))
		return
	}
	everything(t, 2, 1, compare)
	everything(t, 2, 2, weakly(once))
	everything(t, 2, 1, weakly(endless))
	everything(t, 2, 2, weakly(together))
	everything(t, 2, 1, weakly(preempted))
	if *long {
		everything(t, 3, 1, compare)
		everything(t, 2, 2, compare)
		everything(t, 2, 2, endless)
		everything(t, 3, 1, endless)
		everything(t, 2, 2, preempted)
		everything(t, 3, 1, weakly(preempted))
	}
}

// TestHandlersLetOthersIn: with one count for all a handler gets in because another one is
// inside. No reduction may take that one's steps together.
func TestHandlersLetOthersIn(t *testing.T) {
	const file = "testdata/late-entry.plan"
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for refs, want := range map[int3.Refs]cpus.Property{int3.PerCPU: "", int3.NoRef: "", int3.SharedRef: cpus.UseAfterFree} {
		s := setup(t, "x86_64", "breakpoint", "", 3, 1)
		s.Refs, s.Workload = refs, Endless
		if s.Protocol, err = poke.ParseProtocol(file, src); err != nil {
			t.Fatal(err)
		}
		for _, r := range reductions {
			var found cpus.Property
			if got := explore(t, s, Options{Reduce: r.Reductions}); got.Violation != nil {
				found = got.Violation.Property
			}
			if found != want {
				t.Errorf("refs %s, reduce %s: %q, want %q", refs, r.name, found, want)
			}
		}
	}
}

// TestObliged: which CPUs have something to do though they make no call: those that are asked or owe an answer, those
// that may go on, and where rounds reach CPUs that mask interrupts also those that stand still.
func TestObliged(t *testing.T) {
	for _, arch := range []string{"x86_64", "riscv64"} {
		s := setup(t, arch, "native", "", 2, 1)
		m, err := s.Model()
		if err != nil {
			t.Fatal(err)
		}
		round := request(1) | request(slices.Index(requestCauses[:], cpus.Sync))<<bitsFrom
		for _, tt := range []struct {
			phase          cpus.Phase
			stopped, asked bool
			want           bool
		}{
			{cpus.Boundary, false, false, false}, {cpus.Boundary, false, true, true},
			{cpus.Asleep, false, false, false}, {cpus.Asleep, false, true, true},
			{cpus.Stopped, true, false, false}, {cpus.Stopped, false, false, true}, {cpus.Stopped, false, true, true},
			{cpus.Stopped, true, true, arch == "riscv64"},
			{cpus.Down, false, false, false}, {cpus.Down, false, true, false},
			{cpus.Syncing, false, false, true}, {cpus.Calling, true, false, true},
		} {
			w := newWorld(m)
			w.cpu[1].Phase, w.stopped[1] = tt.phase, tt.stopped
			if tt.asked {
				w.box[1][0] = round
			}
			if got := w.obliged(1); got != tt.want {
				t.Errorf("%s: CPU %s, stopped %v, asked %v: %v", arch, tt.phase, tt.stopped, tt.asked, got)
			}
		}
	}
}
