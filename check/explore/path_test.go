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

// TestWaitsOnItsWay: a CPU that comes in from user space while the machine stands still waits, and says so; when the
// others go on it may, too.
func TestWaitsOnItsWay(t *testing.T) {
	p, err := poke.ParseProtocol("lazy.plan", []byte("name: x\nbatching: whole\nevery batch:\n    StopMachine lazy\n"+
		"    Write word\n    Resume\nentry:\n    enter\n    await resume\n    catch up\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t, "x86_64", "breakpoint", "", 2, 1)
	s.Protocol, s.Roles[1] = p, cpus.Isolated
	m, err := s.Model()
	if err != nil {
		t.Fatal(err)
	}
	full, err := newSearch(m, Options{Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := full.run(t.Context()); err != nil || r.Verdict != Safe {
		t.Fatal(r, err)
	}
	told := map[string]int{}
	err = full.seen.each(func(_ uint64, words []uint64) error {
		w := newWorld(m)
		w.unpack(words)
		was := w.cpu[1]
		way, at := was.OnWay()
		if way != cpus.OnEntry || was.Phase != cpus.Crossing || m.Code.Path.WaySteps(way)[at] != cpus.DoAwaitResume {
			return nil
		}
		stands := w.stopping != 0
		w.perform(action{kind: stepCPU, who: 1}, cpus.Repeat(nil))
		what := w.didCross(&was, &w.cpu[1])
		told[what]++
		if _, on := w.cpu[1].OnWay(); stands && on == at != (what == "waits: the machine stands still") {
			t.Errorf("stopping %v: %s", stands, what)
		}
		return nil
	})
	if err != nil || len(told) != 2 || told["may go on"] == 0 || told["waits: the machine stands still"] == 0 {
		t.Errorf("%v, %v", told, err)
	}
}
