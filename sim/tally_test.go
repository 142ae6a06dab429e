// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/results"
)

// TestTally: the answer is that of the rows, and says how many it rests on.
func TestTally(t *testing.T) {
	columns := []results.Column{{Name: "ipis_per_cpu"}, {Name: "ipis_isolated_max"}, {Name: "violations"}, {Name: "lost_calls"}}
	limits, err := Limits.Parse([]string{"ipis=10"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rows         [][4]int64
		cut          bool
		limits       Budget
		costs, ended string
	}{
		{rows: [][4]int64{{3, 0, 0, 0}}, costs: "COST: 3 interrupts of each CPU, 0 of an isolated one",
			ended: "OK: 0 violations, 0 lost calls in 1 row"},
		{rows: [][4]int64{{3, 7, 0, 0}, {9, 2, 0, 0}}, limits: limits,
			costs: "YES: within the budget; COST: 3 to 9 interrupts of each CPU, 2 to 7 of an isolated one",
			ended: "YES: within the budget; OK: 0 violations, 0 lost calls in 2 rows"},
		{rows: [][4]int64{{3, 0, 2, 0}, {11, 0, 3, 4}}, limits: limits, cut: true,
			costs: "INCOMPLETE; NO: over the budget in 1 of 2 rows; " +
				"COST so far (2 of 9 rows): 3 to 11 interrupts of each CPU, 0 of an isolated one",
			ended: "INCOMPLETE; NO: over the budget in 1 of 2 rows; VIOLATIONS so far (2 of 9 rows): 5, tail, 4 lost calls"},
		{limits: limits, cut: true, costs: "INCOMPLETE", ended: "INCOMPLETE"},
	} {
		c := Tally{Limits: tt.limits, Rows: 9, Cut: tt.cut}
		for i, r := range tt.rows {
			cells := []results.Value{results.Int(r[0]), results.Int(r[1]), results.Int(r[2]), results.Int(r[3])}
			c.Count(columns, cells)
			c.Hold("row "+string(rune('1'+i)), columns, cells)
			if r[2] > 0 {
				c.Complain(i, "wrong\n", []string{"tail"})
			}
		}
		if got := c.Answer(c.Costs()); got != tt.costs {
			t.Errorf("%s\nwant %s", got, tt.costs)
		}
		if got := c.Answer(c.Outcome()); got != tt.ended {
			t.Errorf("%s\nwant %s", got, tt.ended)
		}
		if faults := strings.Join(c.Faults(), ""); tt.cut && len(tt.rows) > 0 &&
			(!strings.HasPrefix(faults, "wrong\nwrong\n\nover the budget\n  row 2: ") || !c.No()) {
			t.Errorf("%q", faults)
		}
	}
}
