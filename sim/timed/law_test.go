// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// TestLaw: what is drawn is what a search through all sums finds, whatever the weights;
// at sums, beside them, and beyond all.
func TestLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l law
		for range 2 { // also where others were before
			l.clear()
			weights := rapid.SliceOfN(rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1e-300, 1e-9, 1})), 1,
				50).Draw(t, "weights")
			for i, w := range weights {
				l.add(w)
				if i == len(weights)/2 {
					l.at(0) // the guide is of those that are there
				}
			}
			points := append(l.upTo[:len(weights):len(weights)], rapid.Float64Range(0, l.total()).Draw(t, "x"))
			for k := range weights { // where the parts of the guide begin
				points = append(points, float64(k)*(l.total()/float64(len(weights))))
			}
			for _, at := range points {
				for _, x := range []float64{0, math.Nextafter(at, 0), at, math.Nextafter(at, 100), 100} {
					if got, want := l.at(x), min(sort.SearchFloat64s(l.upTo, x), len(weights)-1); got != want {
						t.Fatalf("%v of %v: %d, want %d", x, l.upTo, got, want)
					}
				}
			}
		}
	})
}
