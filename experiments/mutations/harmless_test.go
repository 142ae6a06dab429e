// SPDX-License-Identifier: Apache-2.0

package mutations

import (
	"testing"

	"github.com/textpoke/textpoke/check/explore"
)

// TestEverySafeMutationIsExplained: also with one site, and with tasks that are
// preempted.
func TestEverySafeMutationIsExplained(t *testing.T) {
	one, preempted := wholeGrid(), wholeGrid()
	one["sites"] = []string{"1"}
	preempted["sites"], preempted["preempt"] = []string{"1"}, []string{"true"} // two sites are millions of states
	answers := map[string]*Answer{"2 sites": wholeAnswer(t)}
	if !testing.Short() {
		answers["1 site"], answers["preemption"] = ask(t, one, search), ask(t, preempted, search)
	}
	for name, a := range answers {
		for _, r := range a.all() {
			if r.Mutation == "" {
				continue
			}
			if r.Verdict == explore.Incomplete {
				t.Errorf("%s: %s: incomplete", name, describe(r))
			}
			why := whyHarmless(r.Question)
			if r.Verdict == explore.Safe && why == nil {
				t.Errorf("%s: %s is safe, and nobody says why", name, describe(r))
			}
			if r.Verdict == explore.Unsafe && why != nil && knownUnsafe(r.Question) == "" && !(r.Question.Preempt && pair(r.Question)) {
				t.Errorf("%s: %s breaks, though %q", name, describe(r), why.Name)
			}
		}
	}
}

// TestExplanationsRestOnSomething takes away what each explanation rests on, and
// nothing else, and sees the protocol break.
func TestExplanationsRestOnSomething(t *testing.T) {
	type question struct {
		spec    string
		sites   int
		preempt bool
	}
	tests := map[string]struct {
		safe, broken question
		want         string
	}{
		"nothing more to queue": {
			question{"x86_64 native unsorted-batch weak", 1, false},
			question{"x86_64 native unsorted-batch weak", 2, false}, "unhandled-breakpoint",
		},
		"nobody runs": {
			question{"arm64 stop-machine misaligned-literal weak", 2, false},
			question{"arm64 word misaligned-literal weak", 2, false}, "torn-literal",
		},
		"nobody is on the way": {
			question{"x86_64 stop-machine no-grace-period weak", 2, false},
			question{"x86_64 stop-machine no-grace-period weak", 2, true}, "use-after-free",
		},
		"everybody fetches afresh anyway": { // the rounds alone do not do it
			question{"riscv64 fence-per-write drop-sync-1 weak", 2, false},
			question{"riscv64 fence-per-write no-stop weak", 2, false}, "half-pair",
		},
		"the literal is data": { // unlike what a CPU fetches
			question{"riscv64 native drop-sync-1 weak", 2, false},
			question{"riscv64 native drop-sync-2 weak", 2, false}, "stale-after-completion",
		},
		"one word, nothing behind the breakpoint": {
			question{"arm64 breakpoint drop-sync-2 weak", 2, false},
			question{"x86_64 breakpoint drop-sync-2 weak", 2, false}, "torn-fetch",
		},
		"nothing is promised": { // unlike where a last round promises it
			question{"arm64 word no-fence weak", 2, false},
			question{"riscv64 word no-fence weak", 2, false}, "stale-after-completion",
		},
		"one word, one store": {
			question{"riscv64 breakpoint no-breakpoint weak", 2, false},
			question{"x86_64 breakpoint no-breakpoint weak", 2, false}, "torn-fetch",
		},
		"the head is read first": { // which is no help where the tail is stored under the old head
			question{"x86_64 breakpoint drop-sync-2 coherent", 2, false},
			question{"x86_64 breakpoint drop-sync-1 coherent", 2, false}, "torn-fetch",
		},
		"versions come whole": {
			question{"x86_64 breakpoint drop-sync-1 atomic", 2, false},
			question{"x86_64 breakpoint drop-sync-1 quadword", 2, false}, "torn-fetch",
		},
	}
	for _, h := range harmlessOnes {
		tt, ok := tests[h.Name]
		if !ok {
			t.Errorf("%q is not tried", h.Name)
			continue
		}
		safe := one(t, tt.safe.spec, tt.safe.sites, tt.safe.preempt)
		if why := whyHarmless(safe.Question); safe.Verdict != explore.Safe || why == nil || why.Name != h.Name {
			t.Errorf("%q: %s is %s, because of %v", h.Name, tt.safe.spec, outcome(safe), why)
		}
		if broken := one(t, tt.broken.spec, tt.broken.sites, tt.broken.preempt); outcome(broken) != tt.want {
			t.Errorf("%q: without it %s is %s, want %s", h.Name, tt.broken.spec, outcome(broken), tt.want)
		}
	}
}

// TestRoundForTheLiteral: riscv64's protocol without it is protocol word, step by
// step.
func TestRoundForTheLiteral(t *testing.T) {
	dropped, word := one(t, "riscv64 native drop-sync-1 weak", 2, false), one(t, "riscv64 word - weak", 2, false)
	if dropped.States != word.States || dropped.Depth != word.Depth || dropped.Transitions != word.Transitions {
		t.Errorf("%d states, %d steps; word has %d, %d", dropped.States, dropped.Depth, word.States, word.Depth)
	}
}
