// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWitness: the steps to an outcome are told in words, from the first on.
func TestWitness(t *testing.T) {
	for _, c := range []struct {
		test, class string
		want        []string
	}{
		{"MP.FF+dmb.st+po", "arm(0,1)", []string{
			`1. writer performs "store a 1"`,
			`2. writer performs "dmb.st"`,
			`3. writer performs "store b 1"`,
			`4. cpu fetches for "r1 = exec b": it executes 1, as in memory`,
			`5. cpu fetches for "r2 = exec a": it executes 0, though memory has 1`,
		}},
		{"SM.B+dsb-ic-dsb-isb", "arm(0,0)", []string{
			`1. cpu performs "store a 1"`,
			`2. cpu performs "dsb"`,
			`3. "ic a" of cpu reaches cpu: it may fetch a from "0" on`,
			`4. cpu performs "dsb"`,
			`5. cpu performs "isb"`,
			`6. cpu fetches for "r1 = exec a": it executes 0, though memory has 1`,
		}},
		{"rv-MP.RF+ipi+po", "rv(ziccif)", []string{
			`1. writer performs "ipi"`,
			`2. cpu takes the interrupt, fetches afresh and answers`,
			`3. writer performs "wait"`,
			`4. writer performs "write flag 1"`,
			`5. cpu performs "r1 = read flag": it returns 1`,
			`6. cpu fetches for "r2 = exec a": it executes 0, as in memory`,
			`7. writer performs "store a 1"`,
		}},
	} {
		rows, err := shipped(t, c.test).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Class != c.class {
				continue
			}
			if diff := cmp.Diff(c.want, r.Witness); diff != "" {
				t.Errorf("%s on %s: %s", c.test, c.class, diff)
			}
		}
	}
}
