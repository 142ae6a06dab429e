// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everyReduction is what a search may leave out, from nothing to all.
var everyReduction = []explore.Reductions{{}, {Symmetry: true}, {Order: true}, {Symmetry: true, Order: true}}

func search(t *testing.T, b *Bug, fixed bool, o explore.Options, options ...option) (*explore.Model, *explore.Result) {
	t.Helper()
	m, err := b.with(fixed, options)
	if err != nil {
		t.Fatal(err)
	}
	o.LimitStates = 1_000_000 // seconds' worth
	r, err := explore.Explore(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict == explore.Incomplete {
		t.Fatalf("%s, fixed %t: %s", b.Name, fixed, r.Cut)
	}
	return m, r
}

// expect explores one side of a bug and tells whether it is as it must be.
func expect(t *testing.T, b *Bug, fixed bool, o explore.Options, options ...option) (*explore.Model, *explore.Result) {
	t.Helper()
	m, r := search(t, b, fixed, o, options...)
	switch {
	case fixed && r.Verdict != explore.Safe:
		t.Errorf("with the fix, %+v: %s\n%s", o.Reduce, r.Violation, r.Trace.ExplainIn(0))
	case !fixed && r.Verdict != explore.Unsafe:
		t.Errorf("without the fix, %+v: %s after %d states, want %s", o.Reduce, r.Verdict, r.States, b.Want)
	case !fixed && r.Violation.Property != b.Want:
		t.Errorf("without the fix, %+v: %s, want %s\n%s", o.Reduce, r.Violation, b.Want, r.Trace.ExplainIn(0))
	}
	return m, r
}

// TestBugs: every bug breaks what it says and nothing else first, its fix mends
// it, whatever the search leaves out.
func TestBugs(t *testing.T) {
	for _, b := range All() {
		t.Run(b.Name, func(t *testing.T) {
			for _, fixed := range []bool{false, true} {
				depth := 0
				for i, reduce := range everyReduction {
					_, r := expect(t, &b, fixed, explore.Options{Reduce: reduce, Exact: i == 0})
					if fixed {
						continue
					}
					if i == 0 {
						depth = r.Depth
					}
					if r.Depth != depth || !r.Trace.Shortest {
						t.Errorf("%+v: depth %d, want %d", reduce, r.Depth, depth)
					}
				}
			}
		})
	}
}

// TestBugsOnLargerMachines: another CPU neither hides a bug nor breaks its fix.
func TestBugsOnLargerMachines(t *testing.T) {
	for _, b := range All() {
		t.Run(b.Name, func(t *testing.T) {
			m, err := b.Model(false)
			if err != nil {
				t.Fatal(err)
			}
			more := withCPUs(len(m.Roles) + 1)
			if n := len(m.Roles); n > 2 && testing.Short() {
				t.Skip("the slow ones")
			}
			for _, fixed := range []bool{false, true} {
				expect(t, &b, fixed, explore.Options{Reduce: explore.Reductions{Symmetry: true, Order: true}}, more)
			}
		})
	}
}

// halves are defects that one store across a border of quadwords has, half done.
var halves = map[string]bool{"nmi-in-stop-machine": true, "stop-machine-skips": true, "chimera-link-torn": true,
	"dragonos-static-key": true, "nop10-other-trampoline": true}

// words are defects of one aligned word of arm64. Models that fetch more at once are about
// x86_64: to them it is whole, whatever Arm leaves open.
var words = map[string]bool{"fex-load-to-branch": true, "dynamorio-stub": true}

// TestFetchModels: what is stale as a whole breaks with every model of fetches; what is
// torn needs one that tears, and some break otherwise then. Fixes hold with all of them,
// or with those that they rest on and no other.
func TestFetchModels(t *testing.T) {
	for _, b := range All() {
		for _, f := range cpus.Fetches() {
			reduce := explore.Options{Reduce: explore.Reductions{Symmetry: true, Order: true}}
			if _, r := search(t, &b, true, reduce, withFetch(f)); (r.Verdict == explore.Safe) !=
				(b.Rests == nil || slices.Contains(b.Rests, f)) {
				t.Errorf("%s, fixed, %s: %s %v", b.Name, f, r.Verdict, r.Violation)
			}
			want := cmp.Or(b.Otherwise[f], b.Want)
			_, r := search(t, &b, false, reduce, withFetch(f))
			switch {
			case (f == cpus.Atomic && !halves[b.Name] || f == cpus.Quadword && words[b.Name]) && want == cpus.TornFetch:
				if r.Verdict == explore.Unsafe && strings.HasPrefix(r.Violation.Why, "mixes versions") {
					t.Errorf("%s, %s: %s", b.Name, f, r.Violation)
				}
			case r.Verdict != explore.Unsafe || r.Violation.Property != want:
				t.Errorf("%s, %s: %s %v, want %s", b.Name, f, r.Verdict, r.Violation, want)
			}
		}
	}
}

// TestTracesReplay: each counterexample can be forced on the live machine, where
// it ends in the same violation.
func TestTracesReplay(t *testing.T) {
	for _, b := range All() {
		m, r := expect(t, &b, false, explore.Options{})
		if r.Trace == nil {
			continue
		}
		v, err := explore.Replay(m, r.Trace)
		if err != nil {
			t.Errorf("%s: %v", b.Name, err)
		} else if v.Property != b.Want {
			t.Errorf("%s: %s on the live machine, want %s", b.Name, v, b.Want)
		}
		if n, err := explore.Conform(m, r.Trace); err != nil {
			t.Errorf("%s: step %d: %v", b.Name, n, err)
		}
	}
}

// TestOneThingDiffers: the fix is the fix and nothing else. What it is is in
// testdata, for review.
func TestOneThingDiffers(t *testing.T) {
	var out strings.Builder
	for _, b := range All() {
		list, err := b.Difference()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 0 {
			t.Errorf("%s: nothing differs", b.Name)
		}
		fmt.Fprintf(&out, "%s\n", b.Name)
		for _, c := range list {
			fmt.Fprintf(&out, "\t%s\n", c)
			follows := list[0].What == "Initial" || list[0].What == "Code.Sites"
			if c.What != list[0].What && !(follows && strings.HasPrefix(c.What, "patch ")) { // it leads from what is there
				t.Errorf("%s: not only %s differs, also %s", b.Name, list[0].What, c.What)
			}
		}
	}
	golden.Check(t, filepath.Join("testdata", "differences.txt"), []byte(out.String()))
}

// TestDifferenceSeesEverything: two machines that differ in one more thing are
// found out.
func TestDifferenceSeesEverything(t *testing.T) {
	for what, change := range map[string]func(*explore.Model){
		"path: miss":           func(m *explore.Model) { m.Code.Path = m.Code.Path.With(cpus.MissFatal) },
		"Code.Stretch":         func(m *explore.Model) { m.Code.Stretch = 2 },
		"Roles":                func(m *explore.Model) { m.Roles = append(m.Roles, cpus.Idle) },
		"Slots":                func(m *explore.Model) { m.Slots = 7 },
		"patch 0 of patcher 0": func(m *explore.Model) { m.Programs[0].Patches[0].New ^= 1 },
		"plan of patcher 0":    func(m *explore.Model) { m.Programs[0].Plan = m.Programs[0].Plan[1:] },
	} {
		b, err := Named("arm64-jump-label")
		if err != nil {
			t.Fatal(err)
		}
		is, err := b.laidOut(false)
		if err != nil {
			t.Fatal(err)
		}
		changed, err := b.laidOut(false)
		if err != nil {
			t.Fatal(err)
		}
		change(changed)
		list, err := difference(is, changed)
		if err != nil || len(list) != 1 || list[0].What != what {
			t.Errorf("%s: %v, %v", what, list, err)
		}
	}
}

// catalogue is every entry, by section: what is told and what is omitted
// together are neither more nor less. The 13th has four sides.
func catalogue() map[string]bool {
	all := map[string]bool{}
	for n := 1; n <= 35; n++ {
		section := "A"
		for _, s := range []struct {
			from int
			name string
		}{{15, "B"}, {24, "C"}, {26, "D"}, {31, "E"}, {34, "A"}} {
			if n >= s.from {
				section = s.name
			}
		}
		if n != 13 {
			all[fmt.Sprintf("%s%d", section, n)] = true
			continue
		}
		for side := 1; side <= 4; side++ {
			all[fmt.Sprintf("A13.%d", side)] = true
		}
	}
	return all
}

func TestCatalogueIsComplete(t *testing.T) {
	all := catalogue()
	if len(all) != 38 {
		t.Fatalf("%d entries", len(all))
	}
	told, left := map[string]bool{}, map[string]bool{}
	for _, b := range exhibits() {
		told[b.Number] = true
	}
	for _, o := range OmittedBugs() {
		if told[o.Number] || left[o.Number] {
			t.Errorf("%s, %s, is omitted and told, or omitted twice", o.Number, o.Name)
		}
		left[o.Number] = true
	}
	for n := range all {
		if !told[n] && !left[n] {
			t.Errorf("%s is neither told nor omitted", n)
		}
	}
	if n := len(told) + len(left); n != len(all) {
		t.Errorf("%d entries, want %d", n, len(all))
	}
}

var (
	kebab  = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	commit = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	// elsewhere is a pull request, an issue or a file of a project that is none of Linux.
	elsewhere = regexp.MustCompile(`github\.com/[\w-]+/[\w-]+/(pull|issues)/\d+|pkg/[\w/]+\.go`)
)

// TestLabels: every exhibit says what it is and where that is from.
func TestLabels(t *testing.T) {
	seen := map[string]bool{}
	name := func(n string) {
		if !kebab.MatchString(n) || seen[n] {
			t.Errorf("name %q", n)
		}
		seen[n] = true
	}
	for _, b := range All() {
		name(b.Name)
		for what, s := range map[string]string{
			"title": b.Title, "versions": b.Versions, "source": b.Source, "story": b.Story, "fix": b.Fix, "want": string(b.Want),
		} {
			if s == "" || s != strings.TrimSpace(s) || strings.Contains(s, "  ") {
				t.Errorf("%s: %s %q", b.Name, what, s)
			}
		}
		if !commit.MatchString(b.Source) && !strings.Contains(b.Source, "linux-kernel") && !elsewhere.MatchString(b.Source) &&
			(b.Number != "" || !strings.Contains(b.Source, ".c, Linux ")) {
			t.Errorf("%s: neither a commit nor a mail, nor a file of the kernel or of another system: %q", b.Name, b.Source)
		}
		if strings.HasSuffix(b.Title, ".") || !strings.HasSuffix(b.Story, ".") {
			t.Errorf("%s: a title is no sentence, a story is some", b.Name)
		}
	}
	for _, o := range OmittedBugs() {
		name(o.Name)
		if o.Title == "" || o.Reason == "" {
			t.Errorf("%+v", o)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, b := range All() {
		if got, err := Named(b.Name); err != nil || got.Number != b.Number {
			t.Errorf("%s: %v, %v", b.Name, got, err)
		}
	}
	if _, err := Named("lost"); err == nil || !strings.Contains(err.Error(), "lost-text-mutex") {
		t.Errorf("an error that does not say what there is: %v", err)
	}
}
