// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// TestBothSides: a file that says both sides is checked with both. The two plans are
// those of docs/plan-files.md, and so are the depths.
func TestBothSides(t *testing.T) {
	doc, err := os.ReadFile("../../docs/plan-files.md")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile("(?s)```plan\n(name: two-rounds\n.*?)```").FindSubmatch(doc)
	if text == nil {
		t.Fatal("the document has no plan two-rounds")
	}
	for miss, depth := range map[string]int{"fatal": 23, "look again\nsync\ngo back": 29} {
		src := strings.Replace(string(text[1]), "    fatal\n", miss+"\n", 1)
		p, err := poke.ParseProtocol("two-rounds.plan", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, "x86_64", "breakpoint", "", 2, 1)
		s.Protocol = p
		r := explore(t, s, Options{Reduce: all})
		if r.Verdict != Unsafe || r.Violation.Property != cpus.UnhandledBreakpoint || r.Depth != depth {
			t.Errorf("%q: %s %v at %d, want %d", miss, r.Verdict, r.Violation, r.Depth, depth)
		}
	}
}

// TestEntryPaths: a CPU that is left out must say that it is in the kernel, and then
// catch up, in this order.
func TestEntryPaths(t *testing.T) {
	for entry, want := range map[string]Verdict{
		"enter\ncatch up":              Safe,
		"enter":                        Unsafe,
		"catch up":                     Unsafe,
		"catch up\nenter":              Unsafe,
		"call a site\nenter\ncatch up": Unsafe,
	} {
		var src string
		for _, sh := range poke.ShippedPlans() {
			if sh.Name == "breakpoint-lazy" {
				src, _, _ = strings.Cut(string(sh.Text), "entry:")
			}
		}
		p, err := poke.ParseProtocol("lazy.plan", []byte(src+"entry:\n"+entry+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		s := setup(t, "x86_64", "breakpoint", "", 2, 1)
		s.Protocol, s.Roles[1] = p, cpus.Isolated
		for _, reduce := range []Reductions{{}, all, single} {
			if r := explore(t, s, Options{Reduce: reduce}); r.Verdict != want {
				t.Errorf("entry %q, reduce %s: %s %v, want %s", entry, reduce, r.Verdict, r.Violation, want)
			}
		}
	}
}
