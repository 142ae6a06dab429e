// SPDX-License-Identifier: Apache-2.0

package silicon

import (
	"math"
	"testing"
)

// TestShare: with nothing seen in n the upper end is 1 - (alpha/2)^(1/n); the interval of 5
// in 10 is that of the 1934 paper's chart, 0.187 to 0.813; and each end is where the
// binomial tail is alpha/2, summed term by term.
func TestShare(t *testing.T) {
	if got, want := (share{0, 100}).High(), 1-math.Pow(0.025, 0.01); math.Abs(got-want) > 1e-9 {
		t.Errorf("0 of 100: %g, want %g", got, want)
	}
	s := share{5, 10}
	if math.Abs(s.Low()-0.187) > 5e-4 || math.Abs(s.High()-0.813) > 5e-4 {
		t.Errorf("5 of 10: %g to %g", s.Low(), s.High())
	}
	for n := 1; n < 30; n++ {
		for k := 0; k <= n; k++ {
			s := share{k, n}
			if k > 0 && math.Abs(tail(n, k, s.Low())-0.025) > 1e-9 {
				t.Errorf("%+v: low %g", s, s.Low())
			}
			if k < n && math.Abs(1-tail(n, k+1, s.High())-0.025) > 1e-9 {
				t.Errorf("%+v: high %g", s, s.High())
			}
		}
	}
}

// tail is the probability of k or more of n.
func tail(n, k int, p float64) (sum float64) {
	term := math.Pow(1-p, float64(n)) // of none
	for i := range n + 1 {
		if i >= k {
			sum += term
		}
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}
