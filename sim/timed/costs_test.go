// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"fmt"
	"math"
	"testing"

	"github.com/textpoke/textpoke/kernels/calibration"
)

// TestRoundsTakeWhatTheyShould: on every built-in machine, the mean time of many
// updates is what the closed form of a round and its patches' stores give. Nobody
// calls anything, so that only delays are random.
func TestRoundsTakeWhatTheyShould(t *testing.T) {
	const sites, batches, seeds = 64, 16, 60
	for _, k := range calibration.Builtins() {
		c := plain(k.Arch, "breakpoint", sites, fmt.Sprint(k.CPUs), k.Costs)
		c.Costs.Calls, c.Slots = 0, sites/batches
		var sum, squares float64
		for seed := range uint64(seeds) {
			c.Seed = seed
			v := float64(newRig(t, c).update(true).Update)
			sum, squares = sum+v, squares+v*v
		}
		mean := sum / seeds
		off := math.Sqrt(max(squares/seeds-mean*mean, 0) / seeds)
		want := k.Costs.Flip(sites, batches, k.CPUs-1) + batches*(3*k.Costs.Fence+k.Costs.Reference)
		shape := newRig(t, c).shape
		if shape.Literals() {
			want += sites * k.Costs.StoreLiteral
		}
		if !shape.Tail() { // nothing is left of the second phase's stores
			want -= sites * k.Costs.Store
		}
		if shape.Traits.StoresBuffered {
			want += batches * 3 * k.Costs.Fence
		}
		// Costs are rounded to nanoseconds, one event at a time.
		if rounded := float64(4*sites + 10*batches); math.Abs(mean-want) > 4.5*off+rounded {
			t.Errorf("%s: %.0f ns on average, the formula gives %.0f (%.1f standard errors)", k.Name, mean, want,
				(mean-want)/off)
		}
	}
}
