// SPDX-License-Identifier: Apache-2.0

package calibration

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRoundWithoutSendTime: with all sends at once the maximum of n exponential
// delays has the mean of the n-th harmonic number.
func TestRoundWithoutSendTime(t *testing.T) {
	c := Costs{RoundSetup: 1, Delivery: 20, Jitter: 100, Handler: 300, Answer: 4000}
	harmonic := 0.0
	for n := 1; n <= 479; n++ {
		harmonic += 1 / float64(n)
		if n > 10 && n%67 != 10 { // 77, ..., 479
			continue
		}
		if got, want := c.Round(n), 4321+100*harmonic; math.Abs(got-want) > 1e-6*want {
			t.Fatalf("%d targets: %g, want %g", n, got, want)
		}
	}
	if got := c.Round(0); got != 1 {
		t.Errorf("no targets: %g", got)
	}
	c.Jitter, c.Send = 0, 7
	if got := c.Round(10); got != 4321+70 {
		t.Errorf("no delay: %g", got)
	}
}

// TestRoundByDrawing holds the integral against the mean of drawn rounds, five
// standard errors wide.
func TestRoundByDrawing(t *testing.T) {
	const draws = 20000
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []Costs{
		{Send: 790, Jitter: 86800}, {Send: 200, Jitter: 15120}, {Send: 1000, Jitter: 100}, {Send: 5, Jitter: 1000},
	} {
		for _, n := range []int{1, 2, 23} {
			var sum, squares float64
			for range draws {
				last := 0.0
				for i := range n {
					last = max(last, float64(i+1)*c.Send+c.Jitter*random.ExpFloat64())
				}
				sum += last
				squares += last * last
			}
			mean := sum / draws
			deviation := math.Sqrt((squares/draws - mean*mean) / draws)
			if got := c.Round(n); math.Abs(got-mean) > 5*deviation {
				t.Errorf("send %g, jitter %g, %d targets: %g, drawn %g +- %g", c.Send, c.Jitter, n, got, mean, deviation)
			}
		}
	}
}
