// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// loops are plans whose loops stand outside of the batches, or several in one section, and
// what breaks: "" where they are safe. What follows the last patch's word is all that its
// promise rests on.
var loops = []struct{ name, text, broken string }{
	{"a round for each word but the last", `batching: buffered
once after:
    for each patch
        Write literal
        Fence
        Sync 1
        Write word
    end
    Sync 2
`, "stale-after-completion"},
	{"a round before the fence", `batching: whole
once after:
    for each patch
        Write literal
        Fence
        Write word
        Sync 1
    end
    Fence
`, "stale-after-completion"},
	{"the fence behind the round", `batching: whole
once after:
    for each patch
        Write literal
        Fence
        Sync 1
        Write word
    end
    Sync 2
    Fence
`, "stale-after-completion"},
	{"no round behind the last word", `batching: whole
once after:
    for each patch
        Write literal
        Fence
        Sync 1
        Write word
        Fence
    end
`, "stale-after-completion"},
	{"a round at the end", `batching: whole
once after:
    for each patch
        Write literal
        Fence
        Sync 1
        Write word
        Fence
    end
    Sync 2
`, ""},
	{"two loops in one batch, and loops around it", `batching: buffered
once before:
    for each patch
        Fence
    end
every batch:
    for each patch
        Write literal
        Fence
    end
    for each patch
        Write word
        Fence
    end
once after:
    Sync 1
    for each patch
        Fence
    end
`, ""},
}

// looped is a setup of one of them.
func looped(t *testing.T, arch, text string) *explore.Setup {
	t.Helper()
	p, err := poke.ParseProtocol("loops.plan", []byte("name: loops\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t, arch, poke.Native, "")
	s.Protocol = p
	return s
}

// TestLoops: a loop is made for each patch wherever it stands, and no turn of it counts
// for the turn before. What is proved the explorer's machines go through, with all its
// steps and all its views.
func TestLoops(t *testing.T) {
	for _, arch := range []string{"arm64", "riscv64"} {
		for _, c := range loops {
			s := looped(t, arch, c.text)
			p := closed(t, s)
			// Without a round behind its last word the plan promises nothing.
			promises := s.Protocol.Settles(poke.Shape{Traits: s.Arch.Traits(), Len: 4, Patches: 1})
			want := c.broken
			if !promises {
				want = ""
			}
			if got := properties(p); got != want {
				t.Errorf("%s, %s: %q, want %q", arch, c.name, got, want)
			}
			if p.Closed() {
				follow(t, s, p)
			}
		}
	}
}

// TestOneLoopsRound: what a round behind a loop is for is missed where it is left out.
func TestOneLoopsRound(t *testing.T) {
	s := looped(t, "arm64", loops[4].text)
	shape, err := s.Shape()
	if err != nil {
		t.Fatal(err)
	}
	if s.Mutation, err = s.Protocol.Mutation("drop-sync-2", shape); err != nil {
		t.Fatal(err)
	}
	if got := properties(closed(t, s)); got != string(cpus.StaleAfterCompletion) {
		t.Errorf("without round 2: %q", got)
	}
}

// TestNotTold: what views do not tell is refused, in a sentence.
func TestNotTold(t *testing.T) {
	for want, change := range map[string]func(*explore.Setup){
		"several patchers want": func(s *explore.Setup) { s.Patchers, s.Contend = 2, true },
		"from one ops":          func(s *explore.Setup) { s.Switch = true },
		"several lengths":       func(s *explore.Setup) { s.Lengths = []int{2, 5} },
	} {
		s := setup(t, "x86_64", "breakpoint", "")
		change(s)
		if p := closed(t, s); p.Closed() || !strings.Contains(p.Why(), want) {
			t.Errorf("%q, want it to speak of %s", p.Why(), want)
		}
	}
	s := setup(t, "x86_64", "breakpoint", "")
	s.Descending, s.Lengths = true, []int{5, 5}
	if p := closed(t, s); !p.Closed() {
		t.Errorf("patches from the highest address down: %s", p.Why())
	}
}

// TestVectorTooSmall: a plan that publishes the sites of several batches at once is
// refuted where batches come from a vector of fixed size.
func TestVectorTooSmall(t *testing.T) {
	const text = `name: wide
batching: buffered
once before:
    Publish
every batch:
    Write breakpoint
    Sync 1
    Write tail
    Sync 2
    Write head
    Sync 3
once after:
    Unpublish
    WaitHandlers
`
	for batching, want := range map[string]Verdict{"buffered": Refuted, "whole": Proved} {
		q := questions(t, "x86_64", strings.Replace(text, "buffered", batching, 1), "none")[0]
		r, err := Ask(context.Background(), q, nil, explore.Options{Workers: 1})
		if err != nil || r.Verdict != want {
			t.Errorf("%s: %s %s, %v; want %s", batching, r.Verdict, r.Condition, err, want)
		}
	}
}

// TestMappedPages: stores go to the page that was mapped last. A plan that maps each site's page in the turn in which it
// stores is proved, of several patchers too; one that stores in another turn is not, nor one whose store waits in a buffer
// until another page is mapped, nor one that lets another patcher in between. The explorer finds the same.
func TestMappedPages(t *testing.T) {
	const plan = `batching: whole
every batch:
    for each patch
        Map
        Write literal if literal
        Fence
        Sync 1
        Write word
        Fence
    end
    Sync 2
`
	const again = "    for each patch\n        Write word\n        Fence\n    end\n    Sync 2\n"
	for _, c := range []struct {
		name, text string
		patchers   int
		breaks     bool
	}{
		{"mapped and stored", plan, 1, false},
		{"of several patchers", plan, 2, false},
		{"stored in another turn", strings.Replace(plan, "    Sync 2\n", again, 1), 1, true},
		{"waits in a buffer", strings.Replace(plan, "        Write word\n        Fence\n    end\n",
			"        Write word\n    end\n    Fence\n", 1), 1, true},
		{"another patcher in between", strings.NewReplacer("        Map\n", "        Lock text_mutex\n        Map\n"+
			"        Unlock text_mutex\n        Lock text_mutex\n", "    end\n    Sync 2\n", "        Sync 2\n        Unlock text_mutex\n    end\n").Replace(plan), 2, true},
		{"mapped before text_mutex is taken", strings.NewReplacer("        Map\n", "        Map\n        Lock text_mutex\n",
			"    end\n    Sync 2\n", "        Sync 2\n        Unlock text_mutex\n    end\n").Replace(plan), 2, true},
		{"mapped by others without text_mutex", strings.NewReplacer("every batch:\n", "once before:\n    for each patch\n        Map\n"+
			"    end\nevery batch:\n    Lock text_mutex\n", "    Sync 2\n", "    Sync 2\n    Unlock text_mutex\n").Replace(plan), 2, true},
	} {
		for _, arch := range []string{"arm64", "riscv64"} {
			s := looped(t, arch, c.text)
			s.Patchers = c.patchers
			p, want := closed(t, s), ""
			if c.breaks {
				want = string(cpus.WrongPage)
			}
			if got := properties(p); got != want {
				t.Errorf("%s, %s: %q, want %q", arch, c.name, got, want)
			}
			s.Sites, s.Workload = 2, explore.Endless
			m, err := s.Model()
			if err != nil {
				t.Fatal(err)
			}
			all, _ := explore.ParseReductions("all")
			r, err := explore.Explore(t.Context(), m, explore.Options{Reduce: all, Workers: 1, LimitStates: 100_000})
			if err != nil || (r.Violation != nil) != c.breaks || c.breaks && r.Violation.Property != cpus.WrongPage {
				t.Errorf("%s, %s: the explorer finds %v, %v; breaks %t", arch, c.name, r.Violation, err, c.breaks)
			}
		}
	}
}
