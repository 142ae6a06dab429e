package museum

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Accesses, counted by hand from poke.Patcher and cpus.Step.
const (
	begin    = 1 // a patcher takes its CPU over
	patcher1 = 1 // a step of one access: Attach, Release, Publish, Settle, Fence, a store
	verify   = 2 // word and literal
	verify1  = 1 // where there is no literal
	rounds   = 3 // a patcher asks, has its answers, and fetches afresh itself
	grace    = 2 // asks, has its answers

	// A site of x86 by breakpoints: Verify, Publish, three stores with a round
	// each, Unpublish, and WaitHandlers, which looks, has its answer, and clears.
	pass = verify1 + 1 + 3*(1+rounds) + 1 + 3

	look = 1 // for interrupts, before every instruction
	// insn is an instruction with its look: the fetch of a site, the load of an
	// ops, the lookup of a direct call, the call.
	insn = look + 1
	// A CPU answers a round: looks, takes it, fetches afresh, answers. It is still
	// in its interrupt then, where the next one costs it a look less.
	answer, again = 4, 3
	// It goes back by taking nothing, and has looked already.
	back, looked = 1, 1
	// It takes a grace period, goes back, makes its call, and answers between two
	// calls; in takes it has been interrupted already.
	quiesceCalling, takesCalling = look + 1 + back + looked + 1, 1 + back + looked + 1

	unpark, doubt = 1, 1
)

// depths are the lengths of the shortest counterexamples of what is about tracers:
// what the patcher does, then what the CPUs do.
var depths = map[string]int{
	"mismatched-ops": begin + verify + 2*patcher1 + rounds + verify + 2*patcher1 + rounds + patcher1 +
		insn + answer + again + back + looked, // loads, is interrupted twice, goes back and fetches
	"pair-without-sync": begin + verify + 2*patcher1 + rounds + verify + 2*patcher1 + patcher1 +
		answer + back + looked + insn,
	"pair-behind-rcu": begin + verify + 2*patcher1 + rounds + verify + 2*patcher1 + grace + patcher1 +
		insn + // the task that is preempted
		answer + 1 + back + looked + 2*insn + 1 + // the other CPU: a round, a grace period, with a call of three instructions
		unpark + insn,

	"literal-misaligned":    begin + verify + patcher1 + 3*insn,
	"branch-before-literal": begin + verify + 2*patcher1 + 3*insn,
	"nop-before-literal":    begin + verify + 2*patcher1 + grace + patcher1 + look + 1 + back + looked + 1 + 3*insn,
	"ops-freed-at-once":     begin + verify + 5*patcher1 + 3*insn,
	"ops-freed-behind-rcu": begin + verify + 4*patcher1 + grace + patcher1 +
		2*insn + look + 1 + back + looked + 1 + unpark + insn,

	"trampoline-freed-under-sleeper": begin + patcher1 + pass + grace + patcher1 +
		insn + insn + answer + 2*again + takesCalling + unpark + insn,
	"multi-attach-free": begin + patcher1 + pass + grace + patcher1 +
		answer + 2*again + 1 + back + looked + insn + 1 + 2*insn,

	"direct-address-kept":    begin + 2*verify1,
	"direct-functions-moved": begin + 2*patcher1 + 3*insn + doubt,
	"direct-without-detour":  begin + 2*patcher1 + grace + patcher1 + insn + quiesceCalling + 2*insn,
	"direct-gap":             begin + patcher1 + verify1 + 2*patcher1 + insn + 4, // the handler: enter, look up, leave, return
	"direct-grace-too-early": begin + patcher1 + pass + grace + patcher1 + pass + patcher1 +
		insn + answer + 2*again + takesCalling + 2*insn + answer + 2*again + back + looked,
	"direct-freed-behind-rcu": begin + patcher1 + pass + patcher1 + pass + grace + patcher1 +
		insn + insn + answer + 5*again + takesCalling + unpark + insn,
	"direct-call-torn":           begin + patcher1 + 3*insn,
	"direct-table-late":          begin + patcher1 + pass + patcher1 + answer + 2*again + back + looked + 2*insn + doubt,
	"direct-entry-removed-first": begin + 2*patcher1 + 3*insn + doubt,
}

// TestDepths: the shortest way to break each is as short as it can be counted by
// hand.
func TestDepths(t *testing.T) {
	for _, b := range All() {
		want, ok := depths[b.Name]
		if ok != strings.HasPrefix(b.Kind(), "tracer ") {
			t.Errorf("%s: a depth: %v, and it is a %s", b.Name, ok, b.Kind())
		}
		if !ok {
			continue
		}
		if _, r := expect(t, &b, false, explore.Options{}); r.Depth != want {
			t.Errorf("%s: depth %d, want %d\n%s", b.Name, r.Depth, want, r.Trace.Explain())
		}
	}
}

// modifiedTwice is modified for two sites, whose entries change one after the
// other: in between the list function calls B for one and A for the other.
func modifiedTwice(late []poke.Step) *scene {
	s, first := directScene(otherAt)
	second := s.site()
	second.starts(second.calling(otherAt), trampolineA)
	list := slices.Concat(first.passes(first.calling(entryAt)), second.passes(second.calling(entryAt)))
	list[1], list[2] = list[2], list[1]
	both := func(from int32, plan []poke.Step) []poke.Step {
		for i := range plan {
			plan[i].From, plan[i].To = from, from+2
		}
		return plan
	}
	s.program(list,
		about(2, do(poke.Attach)), both(0, s.update("breakpoint", 2)), both(2, write(poke.Literal)),
		both(2, s.update("breakpoint", 2)), late, about(2, do(poke.Release)))
	return s
}

// TestDirectModifyOfTwoSites: half changed is no harm, as long as A is there.
func TestDirectModifyOfTwoSites(t *testing.T) {
	always := func(w []poke.Step) *scene {
		s := modifiedTwice(w)
		s.m.Code.Always = true
		return s
	}
	if got := enough(t, "modifying two sites", always); got != "RCU" {
		t.Errorf("safe from %q on, want RCU", got)
	}
}

// TestDocument: docs/checking.md has every case with its depth, and the numbers of
// bugs that are told and that are not.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/checking.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.SplitSeq(string(b), "\n") {
		if cells := strings.Split(line, "|"); len(cells) == 6 {
			name, _, _ := strings.Cut(strings.Trim(cells[2], " `"), "`")
			rows[name] = strings.TrimSpace(cells[3])
		}
	}
	for name, depth := range depths {
		if rows[name] != fmt.Sprint(depth) {
			t.Errorf("%s: %q steps in the document, want %d", name, rows[name], depth)
		}
	}
	if want := fmt.Sprintf("names %d defects that kernels have had, and %d that cannot be told", len(Bugs()), len(OmittedBugs())); !strings.Contains(string(b), want) {
		t.Errorf("the document does not say that it %s", want)
	}
}

// The ways to wait, from the least to the most.
var waits = []struct {
	name string
	plan []poke.Step
}{
	{"nothing", nil}, {"round", round(2)}, {"RCU", do(poke.SynchronizeRCU)}, {"RCU-tasks", do(poke.GracePeriod)},
}

// enough explores a scene for each way to wait and tells from which one on it is
// safe: more is never worse.
func enough(t *testing.T, what string, build func(wait []poke.Step) *scene) string {
	t.Helper()
	from := ""
	for _, w := range waits {
		b := Bug{Name: what + " behind " + w.name, build: func(bool) *scene { return build(w.plan) }}
		m, err := b.Model(true)
		if err != nil {
			t.Fatal(err)
		}
		for _, reduce := range everyReduction {
			r, err := explore.Explore(context.Background(), m, explore.Options{Reduce: reduce})
			if err != nil || r.Verdict == explore.Incomplete {
				t.Fatal(r, err)
			}
			switch {
			case r.Verdict == explore.Safe && from == "":
				from = w.name
			case r.Verdict == explore.Unsafe && from != "":
				t.Errorf("%s: unsafe, and safe behind %s\n%s", b.Name, from, r.Trace.Explain())
			}
		}
	}
	return from
}

// TestWaits: what has to be waited for, by what can come between two instructions
// of an entry. A round is answered between any two instructions, RCU between two
// calls of every CPU, RCU-tasks between two calls of every task.
func TestWaits(t *testing.T) {
	masked := func(s *scene) { s.path = []cpus.Variant{cpus.SiteApartMasked} }
	interrupted := func(*scene) {}
	for _, c := range []struct {
		what, want string
		build      func([]poke.Step) *scene
	}{
		{"the global pair, masked", "round", func(w []poke.Step) *scene { return pair(w, masked) }},
		{"the global pair, interrupted", "RCU", func(w []poke.Step) *scene { return pair(w, interrupted) }},
		{"the global pair, preempted", "RCU-tasks", func(w []poke.Step) *scene { return pair(w, preempted) }},
		{"call_ops, interrupted", "nothing", func(w []poke.Step) *scene {
			return pair(w, func(s *scene) { s.path = nil })
		}},
		{"call_ops, preempted", "nothing", func(w []poke.Step) *scene {
			return pair(w, preempted, func(s *scene) { s.path = nil })
		}},
		{"freeing an ops, interrupted", "RCU", func(w []poke.Step) *scene { return opsFreed(w, interrupted) }},
		{"freeing an ops, preempted", "RCU-tasks", func(w []poke.Step) *scene { return opsFreed(w, preempted) }},
		{"freeing a trampoline, interrupted", "RCU", func(w []poke.Step) *scene { return modified(nil, w, interrupted) }},
		{"freeing a trampoline, preempted", "RCU-tasks", func(w []poke.Step) *scene { return modified(nil, w, preempted) }},
	} {
		if got := enough(t, c.what, c.build); got != c.want {
			t.Errorf("%s: safe from %q on, want %q", c.what, got, c.want)
		}
	}
}
