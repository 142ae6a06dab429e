// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/axis"
)

// undecided are the mutations that neither way settles. An isolated CPU may never fetch
// afresh, and where the order of stores matters neither a view nor a state has room for
// all that it may still fetch.
var undecided = []string{
	"x86_64 breakpoint-lazy drop-sync-1, fetch atomic",
	"x86_64 breakpoint-lazy drop-sync-2, fetch coherent",
	"x86_64 breakpoint-lazy drop-sync-2, fetch atomic",
}

// enough is how many states are looked at for what is proved, or not settled.
const enough = 200_000

// TestMutationsAgree: of every mutation of every protocol, views and explorer say the
// same: what is proved no search finds, and what is not proved it does, but for what is
// known not to be settled.
func TestMutationsAgree(t *testing.T) {
	protocols, fetches := []string{"stop-machine", "breakpoint", "breakpoint-lazy", "word"}, []string{"weak"}
	if *long {
		protocols, fetches = poke.Names()[1:], cpus.FetchNames() // native is one of the others
	}
	for _, arch := range cpus.ArchNames() {
		for _, protocol := range protocols {
			if !*long && arch == "riscv64" && protocol != "stop-machine" {
				continue
			}
			questions, _, err := check.Questions(axis.Choices{"arch": {arch}, "protocol": {protocol}, "mutate": {"all"},
				"fetch": fetches})
			if err != nil {
				t.Fatal(err)
			}
			broken := 0
			for _, q := range questions {
				if q.Mutation != "" && !agree(t, q) {
					broken++
				}
			}
			if broken == 0 {
				t.Errorf("%s %s: no mutation breaks anything", arch, protocol)
			}
		}
	}
}

// agree asks both ways, and tells whether nothing breaks.
func agree(t *testing.T, q *check.Question) (proved bool) {
	name := fmt.Sprintf("%s %s %s, fetch %s", q.Arch.Traits().Name, q.Protocol, q.Mutation, q.Fetch)
	all, _ := explore.ParseReductions("all")
	o := explore.Options{Reduce: all, Workers: 1, LimitStates: enough}
	r, err := Ask(context.Background(), q, nil, o)
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case r.Verdict == Proved:
		found, cut, err := counterexample(context.Background(), q, r.Proof, o)
		if err != nil || found != nil {
			t.Errorf("%s is proved, and the search finds %v, error %v", name, found, err)
		}
		t.Logf("%s breaks nothing; cut %q", name, cut)
		return true
	case (r.Verdict == Incomplete) != slices.Contains(undecided, name):
		t.Errorf("%s: %s: %s; want it among what is not settled: %t", name, r.Verdict, r.Condition, r.Verdict != Incomplete)
	case r.Verdict == Incomplete:
		t.Logf("%s: %s", name, r.Condition)
	case r.Verdict != Refuted:
		t.Errorf("%s: %s: %s", name, r.Verdict, r.Condition)
	}
	return false
}
