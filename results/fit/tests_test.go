// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// sleep is hours of sleep that ten patients gained with two drugs: A. R. Cushny
// and A. R. Peebles, 1905; the data of Student's paper of 1908, as in R's datasets.
var sleep = [2][]float64{
	{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
	{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4},
}

// TestSleep: what R's t.test prints of them.
func TestSleep(t *testing.T) {
	w, err := Welch(sleep[0], sleep[1])
	if err != nil || !near(w.Statistic, -1.8608, 4) || !near(w.DF, 17.776, 4) || !near(w.P, 0.07939, 3) ||
		!near(w.Estimate.Low, -3.3654832, 6) || !near(w.Estimate.High, 0.2054832, 6) {
		t.Errorf("Welch: %+v, %v", w, err)
	}
	var pairs []float64
	for i := range sleep[0] {
		pairs = append(pairs, sleep[0][i]-sleep[1][i])
	}
	m, err := MeanOf(pairs)
	p := m.Differs(0)
	if err != nil || !near(p.Statistic, -4.0621, 4) || p.DF != 9 || !near(p.P, 0.002833, 3) ||
		!near(p.Estimate.Low, -2.4598858, 6) || !near(p.Estimate.High, -0.7001142, 6) {
		t.Errorf("paired: %+v, %v", p, err)
	}
}

// TestWithin: p is below 0.05 where, and only where, the interval of 90 % lies
// between the bounds. The quantile of the t distribution with 4 degrees of freedom
// is that of tables.
func TestWithin(t *testing.T) {
	const t95df4 = 2.131846786
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Float64Range(-10, 10), 5, 5).Draw(t, "x")
		bound := rapid.Float64Range(0.1, 20).Draw(t, "bound")
		mean, squares := 0.0, 0.0
		for _, v := range x {
			mean += v / 5
		}
		for _, v := range x {
			squares += (v - mean) * (v - mean)
		}
		half := t95df4 * math.Sqrt(squares/4/5)
		room := bound - math.Abs(mean) - half
		if math.Abs(room) < 1e-6 {
			t.Skip("on the edge")
		}
		m, err := MeanOf(x)
		e := m.Within(-bound, bound)
		if err != nil || e.P < 0.05 != (room > 0) {
			t.Fatalf("p %v, and %v of room, %v", e.P, room, err)
		}
		// A value that stands alone is off by sqrt(5) times as much as a mean of five.
		one, err := MeanBehind(mean, x)
		if err != nil || !near(one.SE, math.Sqrt(5)*m.SE, 9) || !near(one.Differs(7).Statistic,
			m.Differs(7).Statistic/math.Sqrt(5), 9) {
			t.Fatalf("one value: %+v, five: %+v, %v", one, m, err)
		}
	})
	if m, err := MeanOf([]float64{1, 1}); err != nil || m.Within(1, 1).P != 1 || m.Differs(1).P != 1 ||
		m.Differs(2).P != 0 {
		t.Errorf("values that do not spread: %+v, %v", m, err)
	}
}

// TestClaim: the interval of 95 % around 10 reaches to 10 -+ 2.776 x 1, that of 90 %
// to 10 -+ 2.132.
func TestClaim(t *testing.T) {
	m := Mean{10, 1, 4}
	for _, tt := range []struct {
		low, high float64
		want      Verdict
	}{{7.8, 12.2, Shown}, {7.9, 12.2, Open}, {7.8, 12.1, Open}, {12.7, 20, Open}, {12.8, 20, Contradicted}, {0, 7.3,
		Open}, {0, 7.2, Contradicted}} {
		if got := m.Claim(tt.low, tt.high); got != tt.want {
			t.Errorf("%v to %v: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
}

// TestAnother: a value that lies at the end of the prediction interval has p 0.05.
func TestAnother(t *testing.T) {
	x := []float64{9, 11, 10, 12, 8}
	// sd is sqrt(10/4), the factor sqrt(1 + 1/5), the quantile for 4 degrees 2.776445105.
	edge := 10 + 2.776445105*math.Sqrt(2.5*1.2)
	a, err := Another(x, edge)
	if err != nil || !near(a.P, 0.05, 7) || !near(a.Estimate.High, edge, 8) {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestHolm: 0.01, 0.02, 0.03, 0.04 times 4, 3, 2, 1, and none below the one before.
func TestHolm(t *testing.T) {
	got := Holm([]float64{0.04, 0.01, 0.03, 0.02})
	for i, want := range []float64{0.06, 0.04, 0.06, 0.06} {
		if !near(got[i], want, 12) {
			t.Errorf("%v", got)
		}
	}
	if got := Holm([]float64{0.9, 0.8}); !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("%v", got)
	}
}

// TestMedian: of six values the interval is from the least to the greatest.
func TestMedian(t *testing.T) {
	values := []float64{6, 1, 5, 2, 4, 3}
	m, err := Median(values)
	if err != nil || m.Value != 3.5 || m.Low != 1 || m.High != 6 || values[0] != 6 {
		t.Errorf("%+v, %v", m, err)
	}
}
