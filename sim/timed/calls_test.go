// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestColdCallsLeaveOutThoseThatAreParked: calls that are preempted inside a tracer are
// executed one by one, so that what is only counted is the rest: Poisson, with the mean
// that rate, time and weight give.
func TestColdCallsLeaveOutThoseThatAreParked(t *testing.T) {
	const rate, busy, length = 1e6, 3, Nanos(2e9)
	for _, parks := range []float64{0, 0.25, 1} {
		c := newCalls(10, rate, 1, rand.New(rand.NewPCG(1, 1)))
		c.parks, c.available = parks, busy
		c.open(0)
		c.heat[3].enabled = true
		c.traced = c.weight[3]
		c.stored(length/2, 3, false, true) // hot from there on
		c.passed(length)
		traced, untraced := c.cold(rand.NewPCG(2, 2))
		all := rate / 1e9 * float64(length) * busy * (1 - parks)
		for _, n := range []struct {
			name string
			got  uint64
			want float64
		}{{"traced", traced, all / 2 * c.weight[3]}, {"untraced", untraced, all * (1 - c.weight[3])}} {
			if math.Abs(float64(n.got)-n.want) > 5*math.Sqrt(n.want) {
				t.Errorf("%v of the calls are parked: %d cold ones %s, want %.0f", parks, n.got, n.name, n.want)
			}
		}
	}
}
