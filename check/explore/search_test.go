// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
)

var update = flag.Bool("update", false, "rewrite golden files")

// setup is a protocol on a small machine.
func setup(t testing.TB, arch, protocol, mutation string, ncpus, sites int) Setup {
	t.Helper()
	a, err := cpus.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Arch: a, Protocol: poke.Named(protocol, a.Traits()), Sites: sites, Fetch: cpus.Weak, Buffer: sched.Dynamic,
		Lookup: int3.BTree}
	for range ncpus {
		s.Roles = append(s.Roles, cpus.Busy)
	}
	if mutation != "" {
		site, err := a.Site(firstSite, s.Protocol.Layout)
		if err != nil {
			t.Fatal(err)
		}
		if s.Mutation, err = s.Protocol.Mutation(mutation, poke.Shape{Traits: a.Traits(), Len: int(site.Len),
			Detach: true}); err != nil {
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

var all = Reductions{Symmetry: true, Sites: true, Order: true}

// single also lets one CPU at a time be in a call.
var single = Reductions{Symmetry: true, Sites: true, Order: true, Single: true}

// TestStatesByHand counts the states of one machine by thinking.
//
// One CPU, one site, one word a site with its literal first, as on arm64. Before
// the patcher begins the CPU stands between two calls and has looked for
// interrupts or not; the site is a nop, so that a call is over with its fetch: 2
// states. The patcher sits on that CPU, whose own task waits, and is alone. Its
// places are: before Attach, 1, and before the fence behind it with the ops still in the
// buffer or not, 2; before each of the 2 accesses of Verify (text and
// literal), 2; before the store of the literal, 1, and before the fence behind it
// with the store still in the buffer or not, 2; the same for the word, 3; all but
// Attach and its fence again on the way back, 8; before GracePeriod, and when it has asked, 2;
// before Release, 1: 1+2+2+3+3+8+2+1 = 22. The fences made the CPU itself fetch
// afresh, so that its task finds a nop when it goes on: 2 again, with the Release still
// in the buffer or not: 4. 2+22+4 = 28.
func TestStatesByHand(t *testing.T) {
	r := explore(t, setup(t, "arm64", "word", "", 1, 1), Options{})
	if r.States != 28 || r.Verdict != Safe {
		t.Errorf("%d states, %s; want 28, safe", r.States, r.Verdict)
	}
}

// TestStateCounts holds the counts of searches without reductions against a file.
func TestStateCounts(t *testing.T) {
	var b strings.Builder
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range poke.Names() {
			for _, size := range [][2]int{{1, 1}, {2, 1}, {2, 2}, {3, 1}} {
				if protocol == "per-site" && size == [2]int{3, 1} {
					continue // with one site it is breakpoint
				}
				r := explore(t, setup(t, arch, protocol, "", size[0], size[1]), Options{})
				fmt.Fprintf(&b, "%-8s %-18s cpus=%d sites=%d %-7s depth=%-4d states=%-8d transitions=%d\n",
					arch, protocol, size[0], size[1], r.Verdict, r.Depth, r.States, r.Transitions)
			}
		}
	}
	golden(t, "states.txt", b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestSameOnAnyNumberOfCores: counts, verdict and counterexample do not depend on
// who looks at which state first, nor on how states are remembered.
func TestSameOnAnyNumberOfCores(t *testing.T) {
	for _, mutation := range []string{"", "drop-sync-1", "no-grace-period", "late-publish"} {
		for _, r := range []Reductions{{}, all, single} {
			s := setup(t, "x86_64", "native", mutation, 3, 2)
			var want string
			for _, o := range []Options{{Workers: 1}, {Workers: 2}, {Workers: 7}, {Workers: 3, Exact: true}} {
				o.Reduce = r
				got := explore(t, s, o)
				schedule := ""
				if got.Trace != nil {
					for _, s := range got.Trace.Steps {
						schedule += " " + s.Do
					}
				}
				text := fmt.Sprint(got.Verdict, got.Depth, got.States, got.Transitions, schedule)
				if want == "" {
					want = text
				}
				if text != want {
					t.Errorf("mutation %q, reduce %s, %d workers, exact %t: %s, want %s", mutation, r, o.Workers, o.Exact, text, want)
				}
			}
		}
	}
}

// TestLimitsAreIncomplete: a search that was cut short never says safe.
func TestLimitsAreIncomplete(t *testing.T) {
	s := setup(t, "x86_64", "native", "", 4, 2)
	for name, o := range map[string]Options{
		"states": {LimitStates: 1000},
		"time":   {LimitTime: time.Nanosecond},
		"memory": {LimitMemory: 1},
	} {
		r := explore(t, s, o)
		if r.Verdict != Incomplete || r.Cut == "" {
			t.Errorf("limit of %s: %s, %q", name, r.Verdict, r.Cut)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Explore(ctx, m, Options{}); err != nil || r.Verdict != Incomplete {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	if r := explore(t, s, Options{LimitStates: 1 << 40, LimitTime: time.Hour, LimitMemory: 1 << 40,
		Reduce: all}); r.Verdict != Safe {
		t.Errorf("limits that are not reached: %s", r.Verdict)
	}
}

// TestCollision holds the probability against the birthday bound at a size where
// it is easy: 2^32 states share 2^64 fingerprints with probability one half.
func TestCollision(t *testing.T) {
	for n, want := range map[uint64]float64{0: 0, 1: 0, 2: 1.0 / (1 << 32) / (1 << 32), 1 << 32: 0.5} {
		if got := collision(n); got < want*0.999999 || got > want*1.000001 {
			t.Errorf("%d states: %g, want %g", n, got, want)
		}
	}
}

// TestFingerprintsDiffer: words that differ in one bit have different fingerprints.
func TestFingerprintsDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for n := 1; n <= 8; n++ {
		words := make([]uint64, n)
		for bit := range 64 * n {
			words[bit/64] ^= 1 << (bit % 64)
			fp := fingerprint(words)
			words[bit/64] ^= 1 << (bit % 64)
			if fp == 0 || seen[fp] {
				t.Errorf("%d words, bit %d: fingerprint %x is there already", n, bit, fp)
			}
			seen[fp] = true
		}
	}
}

// TestWatcherIsWaitedFor: when a search returns its watcher has seen the end, and tells nobody any more.
func TestWatcherIsWaitedFor(t *testing.T) {
	m := programs(t, []poke.Step{{Op: poke.Lock}, {Op: poke.Unlock}})
	for range 50 {
		under, err := newSearch(m, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := under.run(t.Context()); err != nil || r.Verdict != Safe {
			t.Fatal(r, err)
		}
		if under.halt.Load() == nil { // the watcher says so last
			t.Fatal("the watcher was not waited for")
		}
	}
}
