// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// TestPublishFence: breakpoints that overtake what handlers look up are told by no view,
// and are refuted.
func TestPublishFence(t *testing.T) {
	for _, arch := range []string{"arm64", "riscv64"} {
		p := closed(t, setup(t, arch, "breakpoint", "no-publish-fence"))
		if p.Closed() || !strings.HasPrefix(p.Why(), "Publish without a fence behind it") {
			t.Errorf("%s: closed %t, %q", arch, p.Closed(), p.Why())
		}
	}
}

// noWait forgets the batch while handlers may look for it: nothing but WaitHandlers waits for
// them.
const noWait = `name: no-wait
batching: buffered
every batch:
    Publish
    Write breakpoint
    Sync 1
    Write tail
    Sync 2
    Write head
    Unpublish
    WaitHandlers
    Sync 3
miss:
    skip
`

// TestReferencesMatter: plans that are safe with one kind of references and not with
// another are told apart, as the explorer tells them.
func TestReferencesMatter(t *testing.T) {
	late, err := os.ReadFile("../explore/testdata/late-entry.plan")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]map[int3.Refs]string{
		noWait:       {int3.PerCPU: "", int3.SharedRef: "", int3.NoRef: "use-after-free"},
		string(late): {int3.PerCPU: "", int3.SharedRef: "use-after-free", int3.NoRef: ""},
	} {
		for refs, broken := range want {
			p, err := poke.ParseProtocol("refs.plan", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			s := setup(t, "x86_64", "breakpoint", "")
			s.Protocol, s.Refs = p, refs
			if got := properties(closed(t, s)); got != broken {
				t.Errorf("%s, refs %s: %q, want %q", p.Name, refs, got, broken)
			}
			m := small(t, s, size{3, 1})
			all, _ := explore.ParseReductions("all")
			r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: all, Workers: 1})
			if err != nil || (r.Violation == nil) != (broken == "") ||
				r.Violation != nil && string(r.Violation.Property) != broken {
				t.Errorf("%s, refs %s: the explorer finds %v, %v; want %q", p.Name, refs, r.Violation, err, broken)
			}
		}
	}
}

// TestWindowsForgetNothing: whatever was stored since a CPU has fetched afresh it may fetch.
func TestWindowsForgetNothing(t *testing.T) {
	m, err := newMachine(setup(t, "x86_64", "breakpoint", ""))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		first := number(rapid.IntRange(0, len(m.texts.list)-1).Draw(rt, "text"))
		w, want := m.onlyText(first), []number{first}
		for range rapid.IntRange(0, 12).Draw(rt, "stores") {
			x := number(rapid.IntRange(0, len(m.texts.list)-1).Draw(rt, "store"))
			if w = m.pushed(w, x); !slices.Contains(want, x) {
				want = append(want, x)
			}
		}
		is := m.windows.list[w]
		got := slices.Clone(is.list[:is.n])
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Errorf("stored %v, may be fetched %v", want, got)
		}
	})
}

// TestEveryStepHasItsObligation: each step that some view makes has an obligation of its
// name, and so has each property that a step can break.
func TestEveryStepHasItsObligation(t *testing.T) {
	for _, arch := range cpus.ArchNames() {
		c := closed(t, setup(t, arch, "breakpoint", "")).closure
		has := map[string]bool{}
		for _, o := range c.obligations(ground) {
			if has[o.Name] {
				t.Errorf("%s: two are called %s", arch, o.Name)
			}
			has[o.Name] = true
		}
		for name := range c.fired {
			if name = strings.TrimSuffix(name, " elsewhere"); !has["step-"+slug(name)] {
				t.Errorf("%s: %s has no obligation", arch, name)
			}
		}
		for _, v := range c.views {
			for _, b := range slices.Concat(c.stepsOfCPU(v[does], &v), c.stepsOfPatcher(v[place], &v)) {
				if b.broken != "" && !has["never-"+slug(string(b.broken))] {
					t.Errorf("%s: %s can be broken, and has no obligation", arch, b.broken)
				}
			}
		}
	}
}

// TestWhatIsLeft: an update that is over has left the new text at each of its sites, or the
// old one when it leads back.
func TestWhatIsLeft(t *testing.T) {
	for text, want := range map[string]string{
		"Write literal\n    Fence":                            "broken-site",
		"Write literal\n    Fence\n    Write word\n    Fence": "",
	} {
		s := looped(t, "arm64", "batching: whole\nevery batch:\n    "+text+"\n")
		if got := properties(closed(t, s)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestWhatIsLeftIsLeftOfAll: when an update is over its sites are through, and whatever text
// there is while a literal waits is there when none does: so it is the same whether the sites
// that must be right are those that are through, or those behind which nothing waits.
func TestWhatIsLeftIsLeftOfAll(t *testing.T) {
	waited := 0
	for _, batching := range []string{"single", "whole", "buffered"} {
		for _, steps := range []string{"Write literal\n    Fence\n    Write word\n", "Write word\n    Write literal\n"} {
			c := closed(t, looped(t, "arm64", "batching: "+batching+"\nevery batch:\n    "+steps)).closure
			over := func(v *view) bool { return c.program.items[c.places.list[v[place]].item].kind == finish }
			type left struct{ place, text number }
			settled := map[left]bool{}
			for _, v := range c.views {
				if over(&v) && c.waits.list[v[waiting]] == (stores{}) && v[role] == through {
					settled[left{v[place], v[text]}] = true
				}
			}
			for _, v := range c.views {
				switch w := c.waits.list[v[waiting]]; {
				case !over(&v) || v[role] == out:
				case v[role] != through:
					t.Errorf("%s, %q: an update is over, and a site is %d", batching, steps, v[role])
				case w.text == 0 && w.literal != 0:
					waited++
					if !settled[left{v[place], v[text]}] {
						t.Errorf("%s, %q: text %d is there only while a literal waits", batching, steps, v[text])
					}
				}
			}
		}
	}
	if waited == 0 {
		t.Error("no literal waits")
	}
}

// TestUnsortedBatch: an index that searches by halves misses what is queued in any order; one
// that sorts by itself does not.
func TestUnsortedBatch(t *testing.T) {
	for lookup, want := range map[int3.Lookup]string{int3.Vector: "unhandled-breakpoint", int3.BTree: ""} {
		s := setup(t, "x86_64", "breakpoint", "unsorted-batch")
		s.Lookup = lookup
		if got := properties(closed(t, s)); got != want {
			t.Errorf("lookup %s: %q, want %q", lookup, got, want)
		}
	}
}

// TestUnreachedSteps: a step that no view makes is named, and keeps a plan from being proved.
func TestUnreachedSteps(t *testing.T) {
	c := closed(t, setup(t, "arm64", "native", "")).closure
	if step := c.unreached(); step != "" {
		t.Errorf("%s is made in no view", step)
	}
	c.program.items = append(c.program.items, item{kind: ifLast})
	if step := c.unreached(); step != "patcher: is that all?" {
		t.Errorf("%q", step)
	}
}
