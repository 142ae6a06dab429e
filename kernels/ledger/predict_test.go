// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/results/budget"
)

// TestPredictLimits: limits hold the totals of their role, up to their value, and no cause.
func TestPredictLimits(t *testing.T) {
	k, err := Open("x86_64-6.12")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := k.Predict(k.Own, Once(string(FunctionTracer)), []cpus.Role{cpus.Busy, cpus.Busy, cpus.Isolated})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"ipis=552": 2, "ipis=553": 0, "isolated=552": 1, "isolated=553": 0, "idle=0": 0, "patcher=0": 0} {
		limits, err := PredictLimits().Parse([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		var over []budget.Excess
		for _, r := range rows {
			if r.direction == "enable" {
				over = append(over, r.Over(limits)...)
			}
		}
		if len(over) != want {
			t.Errorf("%s: %v, want %d", text, over, want)
		}
	}
}

// TestMostOrMore: a number that is a lower bound is told as one.
func TestMostOrMore(t *testing.T) {
	k, err := Open("x86_64-6.12")
	if err != nil {
		t.Fatal(err)
	}
	said := map[bool]string{}
	for _, unknown := range []bool{false, true} {
		course := Once("static-key:sched_schedstats")
		if unknown {
			course.Unknown = []string{"a probe"}
		}
		rows, err := k.Predict(k.Own, course, []cpus.Role{cpus.Busy, cpus.Busy})
		if err != nil {
			t.Fatal(err)
		}
		said[unknown] = Most(rows)[0]
	}
	number, rest, _ := strings.Cut(said[false], " ")
	if want := number + " or more " + rest; said[true] != want {
		t.Errorf("%q, want %q", said[true], want)
	}
}
