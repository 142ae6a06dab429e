// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestLimits: what a limit ends is incomplete: neither proved nor unproved.
func TestLimits(t *testing.T) {
	saying := func(answer string) *Solver {
		return &Solver{Name: "echo", path: "/bin/echo", args: []string{answer}, decided: map[string]string{}}
	}
	for _, c := range []struct {
		name      string
		arch      string
		protocol  string
		mutation  string
		solver    *Solver
		states    uint64
		want      Verdict
		condition string
	}{
		{"a solver that gives up", "arm64", "stop-machine", "", saying("unknown"), 0, Incomplete, `says "unknown"`},
		{"a solver that runs out of time", "arm64", "stop-machine", "", saying("timeout"), 0, Incomplete, `says "timeout"`},
		{"a solver that contradicts", "arm64", "stop-machine", "", saying("sat"), 0, Unproved, `says "sat"`},
		{"a search that gets through", "x86_64", "breakpoint", "drop-sync-3", nil, 0, Refuted, "unhandled-breakpoint"},
		{"a search that does not", "x86_64", "breakpoint", "drop-sync-3", nil, 20, Incomplete, "cut short: 1 sites, 2 CPUs"},
	} {
		choices := axis.Choices{"arch": {c.arch}, "protocol": {c.protocol}}
		if c.mutation != "" {
			choices["mutate"] = []string{c.mutation}
		}
		questions, _, err := check.Questions(choices)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Ask(context.Background(), questions[0], c.solver, explore.Options{Workers: 1, LimitStates: c.states})
		if err != nil || r.Verdict != c.want || !strings.Contains(r.Condition, c.condition) {
			t.Errorf("%s: %s, %q, %v; want %s, %q", c.name, r.Verdict, r.Condition, err, c.want, c.condition)
		}
	}
}

// TestTooManyViews: where the order of stores is too much to remember, it is a limit that
// says so, beside what weak fetches break.
func TestTooManyViews(t *testing.T) {
	s := setup(t, "x86_64", "word", "")
	s.Fetch = cpus.Coherent
	p := closed(t, s)
	if p.Cut == "" || p.Closed() || len(p.Broken) == 0 || p.Condition != "" {
		t.Errorf("cut %q, closed %t, broken %v, condition %q", p.Cut, p.Closed(), p.Broken, p.Condition)
	}
}
