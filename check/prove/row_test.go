// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"testing"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/sim/axis"
)

// TestTwoWays: views and machines say the same of a protocol and of what breaks it, and a
// proof of what breaks would be found out.
func TestTwoWays(t *testing.T) {
	all, _ := explore.ParseReductions("all")
	for _, c := range []struct {
		mutation, cutoff string
		verdict          Verdict
		limit            uint64
	}{
		{"", "safe up to 2 sites, 3 CPUs", Proved, 0},
		{"", "incomplete with 2 sites, 2 CPUs: the limit of 100 states is reached", Proved, 100},
		{"drop-sync-3", "unsafe with sites 1, cpus 2", Refuted, 0},
	} {
		choices := axis.Choices{"arch": {"x86_64"}, "protocol": {"breakpoint"}}
		if c.mutation != "" {
			choices["mutate"] = []string{c.mutation}
		}
		questions, _, err := check.Questions(choices)
		if err != nil {
			t.Fatal(err)
		}
		o := explore.Options{Reduce: all, Workers: 1, LimitStates: c.limit}
		r, err := Ask(context.Background(), questions[0], nil, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Second(context.Background(), o); err != nil || r.Cutoff != c.cutoff || r.Verdict != c.verdict {
			t.Errorf("%q: %s, %s, %v; want %s, %s", c.mutation, r.Verdict, r.Cutoff, err, c.verdict, c.cutoff)
		}
		r.Verdict = Proved
		if err := r.Second(context.Background(), o); errors.Is(err, ErrDisagree) != (c.verdict == Refuted) {
			t.Errorf("%q, said to be proved: %v", c.mutation, err)
		}
	}
}
