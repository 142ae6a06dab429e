// SPDX-License-Identifier: Apache-2.0

package ledger

import (
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
