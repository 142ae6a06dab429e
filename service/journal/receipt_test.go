// SPDX-License-Identifier: Apache-2.0

package journal

import "testing"

// TestMissed: a forecast holds until a receiver took fewer, or all of them more; the patcher's own CPU receives none.
func TestMissed(t *testing.T) {
	cpu := func(n int) *int { return &n }
	three := &Forecast{Interrupts: 3, Least: 3, Most: 4}
	taken := func(counts ...int64) (all []Taken) {
		for i, n := range counts {
			all = append(all, Taken{CPU: i, Interrupts: n, Others: max(0, n-int64(three.Most))})
		}
		return all
	}
	for _, c := range []struct {
		receipt *Receipt
		missed  bool
	}{
		{nil, false},
		{&Receipt{Patcher: cpu(0), Taken: taken(0, 2)}, false}, // no forecast
		{&Receipt{Forecast: three, Taken: taken(0, 2)}, false}, // several patchers
		{&Receipt{Forecast: three, Patcher: cpu(0), Taken: taken(9)}, false},
		{&Receipt{Forecast: three, Patcher: cpu(0), Taken: taken(0, 3, 4)}, false},
		{&Receipt{Forecast: three, Patcher: cpu(0), Taken: taken(0, 3, 9)}, false},
		{&Receipt{Forecast: three, Patcher: cpu(0), Taken: taken(0, 5, 9)}, true},
		{&Receipt{Forecast: three, Patcher: cpu(0), Taken: taken(0, 2, 9)}, true},
		{&Receipt{Forecast: three, Patcher: cpu(1), Taken: taken(2, 0, 9)}, true},
	} {
		if got := c.receipt.Missed(); got != c.missed {
			t.Errorf("%+v: %v, want %v", c.receipt, got, c.missed)
		}
	}
}
