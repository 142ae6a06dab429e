// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestWorstFirst: of several violations the first by property, CPU, site and reason counts, in whatever order they are found.
func TestWorstFirst(t *testing.T) {
	list := []cpus.Violation{
		{Property: cpus.LostCall, CPU: 1, Site: 2, Why: "a"},
		{Property: cpus.LostCall, CPU: 1, Site: 2, Why: "b"},
		{Property: cpus.LostCall, CPU: 1, Site: 3},
		{Property: cpus.LostCall, CPU: 2},
		{Property: cpus.TornFetch},
	}
	for i := range list {
		for k := range list {
			got := compareViolations(&list[i], &list[k])
			if want := i - k; got < 0 != (want < 0) || got > 0 != (want > 0) {
				t.Errorf("%+v and %+v: %d", list[i], list[k], got)
			}
		}
	}
}

// TestIndented: a line that ends behind the screen's border goes on below, indented; no word is lost, and no line is
// wider than the screen.
func TestIndented(t *testing.T) {
	const line = "  7. CPU 1: fetches the second half of site 0, and sees the first one's new text"
	for _, width := range []int{0, 5, 30, 40, 41, 60, 78, 79, 80, 100} {
		got := indented(line, 5, width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(line), " ") {
			t.Fatalf("width %d: %q", width, got)
		}
		for i, l := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
			if width > 5 && len(l) > width || !strings.HasPrefix(l, []string{"  7", "     "}[min(i, 1)]) || strings.HasSuffix(l, " ") {
				t.Errorf("width %d, line %d: %q", width, i, l)
			}
		}
		if one := width <= 5 || width >= len(line); one != (strings.Count(got, "\n") == 1) {
			t.Errorf("width %d: %q", width, got)
		}
	}
}

// TestMostPatchers: so many patchers as there may be are laid out, and one more is refused.
func TestMostPatchers(t *testing.T) {
	for n, want := range map[int]string{MaxPatchers: "", MaxPatchers + 1: "4 patchers: want 1 to 3"} {
		arch, err := cpus.ParseArch("arm64")
		if err != nil {
			t.Fatal(err)
		}
		s := Setup{Arch: arch, Protocol: poke.Named("word", arch.Traits()), Patchers: n, Sites: MaxPatchers,
			Roles: make([]cpus.Role, MaxPatchers)}
		_, err = s.Model()
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%d patchers: %v, want %q", n, err, want)
		}
	}
}

// TestSitesInOrder: below a step stand the sites that it has changed, in their order, each with its text.
func TestSitesInOrder(t *testing.T) {
	sites := []Site{{Bytes: "00"}, {Bytes: "11"}, {Bytes: "22"}}
	got := (&Trace{Steps: []Step{{Who: "patcher 0", What: "waits", Sites: sites}}}).lines(0)
	if a, b := strings.Index(got, "site 0: 00"), strings.Index(got, "site 2: 22"); a < 0 || b < a {
		t.Error(got)
	}
}
