// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
)

// Accesses, counted by hand from poke.Patcher and cpus.Step.
const (
	begin    = 1 // a patcher takes its CPU over
	patcher1 = 1 // a step of one access: Attach, Release, Publish, Settle, Fence, a store
	verify   = 2 // word and literal
	verify1  = 1 // where there is no literal
	rounds   = 2 // a patcher asks, and has its answers
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
	// It takes a grace period, goes back, and answers between two calls; in takes it
	// has been interrupted already.
	quiesces, takes = look + 1 + back + 1, 1 + back + 1

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
		answer + takes + // the other CPU: a round, a grace period
		unpark + insn,

	"literal-misaligned":    begin + verify + patcher1 + 3*insn,
	"branch-before-literal": begin + verify + 2*patcher1 + 3*insn,
	"nop-before-literal":    begin + verify + 2*patcher1 + grace + patcher1 + quiesces + 3*insn,
	"ops-freed-at-once":     begin + verify + 5*patcher1 + 3*insn,
	"ops-freed-behind-rcu": begin + verify + 4*patcher1 + grace + patcher1 +
		2*insn + quiesces + unpark + insn,

	"trampoline-freed-under-sleeper": begin + patcher1 + pass + grace + patcher1 +
		insn + answer + 2*again + takes + unpark + insn,
	"multi-attach-free": begin + patcher1 + grace + patcher1 + quiesces + 2*insn,

	"direct-address-kept":    begin + 2*verify1,
	"direct-functions-moved": begin + 2*patcher1 + 3*insn + doubt,
	"direct-without-detour":  begin + 2*patcher1 + grace + patcher1 + quiesces + 2*insn,
	"direct-gap": begin + patcher1 + verify1 + 2*patcher1 + insn +
		4, // the handler: enter, look up, leave, return
	"direct-grace-too-early": begin + patcher1 + pass + grace + patcher1 + pass + patcher1 +
		answer + 2*again + takes + 2*insn + answer + 2*again + back + looked,
	"direct-freed-behind-rcu": begin + patcher1 + pass + patcher1 + pass + grace + patcher1 +
		insn + answer + 5*again + takes + unpark + insn,
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
			t.Errorf("%s: depth %d, want %d\n%s", b.Name, r.Depth, want, r.Trace.ExplainIn(0))
		}
	}
}

// edited is a case's text with some of it replaced, each once.
func edited(t *testing.T, name string, pairs ...string) string {
	t.Helper()
	b, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cases.ReadFile("cases/" + b.file)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(pairs); i += 2 {
		if strings.Count(out, pairs[i]) != 1 {
			t.Fatalf("%s has %q %d times", b.file, pairs[i], strings.Count(out, pairs[i]))
		}
		out = strings.Replace(out, pairs[i], pairs[i+1], 1)
	}
	return out
}

// modifiedTwice is direct-freed-behind-rcu for two sites, whose entries change one
// after the other: in between the list function calls B for one and A for the other.
const modifiedTwice = `
machine:
    arch x86_64
    cpus 2
    always traced
    attached other

text:
    calls other, ops other
    calls other, ops other

patches:
    site 0, to calls entry
    site 1, to calls entry
    site 0, from calls entry, to calls third, to ops third
    site 1, from calls entry, to calls third, to ops third

patcher:
    Attach 2
    update breakpoint 0..1
    Write literal 2..3
    update breakpoint 2..3
    WAIT
    Release 2

site:
    fetch site
    look up direct call
    call
`

// TestDirectModifyOfTwoSites: half changed is no harm, as long as A is there.
func TestDirectModifyOfTwoSites(t *testing.T) {
	if got := enough(t, "modifying two sites", modifiedTwice); got != "RCU" {
		t.Errorf("safe from %q on, want RCU", got)
	}
}

// TestDocument: docs/checking-reference.md has every case with its depth, and the numbers of
// bugs that are told and that are not.
func TestDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/checking-reference.md")
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
	kinds := map[string]int{}
	for _, b := range exhibits() {
		kinds[b.Kind()]++
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	for _, want := range []string{
		fmt.Sprintf("names %d defects that kernels have had (%d as `bug`, %d as `tracer bug`) and one as `hardening`",
			kinds["bug"]+kinds["tracer bug"], kinds["bug"], kinds["tracer bug"]),
		fmt.Sprintf("It also names %d that", len(OmittedBugs())),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not say that it %s", want)
		}
	}
	if kinds["hardening"] != 1 {
		t.Errorf("%d hardenings: the document tells of one", kinds["hardening"])
	}
}

// The ways to wait, from the least to the most.
var waits = []struct{ name, step string }{
	{"nothing", ""}, {"round", "Sync 2"}, {"RCU", "SynchronizeRCU"}, {"RCU-tasks", "GracePeriod"},
}

// enough explores a case with each way to wait in place of WAIT and tells from which
// one on it is safe: more is never worse.
func enough(t *testing.T, what, text string) string {
	t.Helper()
	from := ""
	for _, w := range waits {
		b, err := read(what+" behind "+w.name, strings.Replace(text, "WAIT", w.step, 1))
		if err != nil {
			t.Fatal(err)
		}
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
				t.Errorf("%s: unsafe, and safe behind %s\n%s", what, from, r.Trace.ExplainIn(0))
			}
		}
	}
	return from
}

// TestWaits: what has to be waited for, by what can come between two instructions
// of an entry. A round is answered between any two instructions, RCU between two
// calls of every CPU, RCU-tasks between two calls of every task.
func TestWaits(t *testing.T) {
	const preempt, rcu = "    preempt\n", "SynchronizeRCU    if broken\n    GracePeriod       if fixed"
	apart, callOps := "    load ops\n    fetch site\n", "    fetch site\n    load literal\n"
	for _, c := range []struct{ what, want, text string }{
		{"the global pair, masked", "round", edited(t, "pair-without-sync", "Sync 2            if fixed", "WAIT")},
		{"the global pair, interrupted", "RCU", edited(t, "pair-behind-rcu", rcu, "WAIT", preempt, "")},
		{"the global pair, preempted", "RCU-tasks", edited(t, "pair-behind-rcu", rcu, "WAIT")},
		{"call_ops, interrupted", "nothing", edited(t, "pair-behind-rcu", rcu, "WAIT", preempt, "", apart, callOps)},
		{"call_ops, preempted", "nothing", edited(t, "pair-behind-rcu", rcu, "WAIT", apart, callOps)},
		{"freeing an ops, interrupted", "RCU", edited(t, "ops-freed-behind-rcu", rcu, "WAIT", preempt, "")},
		{"freeing an ops, preempted", "RCU-tasks", edited(t, "ops-freed-behind-rcu", rcu, "WAIT")},
		{"freeing a trampoline, interrupted", "RCU", edited(t, "direct-freed-behind-rcu", rcu, "WAIT", preempt, "")},
		{"freeing a trampoline, preempted", "RCU-tasks", edited(t, "direct-freed-behind-rcu", rcu, "WAIT")},
	} {
		if got := enough(t, c.what, c.text); got != c.want {
			t.Errorf("%s: safe from %q on, want %q", c.what, got, c.want)
		}
	}
}
