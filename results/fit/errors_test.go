// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
	"testing"
)

// TestRefusals: each reason why figures say nothing, whole, at its border; of two the first is told.
func TestRefusals(t *testing.T) {
	nan, inf := []float64{1, math.NaN()}, []float64{math.Inf(1), 2}
	const (
		isNaN = "fit: value 1, NaN: a value is not finite"
		isInf = "fit: value 0, +Inf: a value is not finite"
		one   = "fit: a sample of 1 says nothing of how it spreads, want 2 or more"
		none  = "fit: a sample of 0 says nothing of how it spreads, want 2 or more"
	)
	welch := func(a, b []float64) func() error { return func() error { _, err := Welch(a, b); return err } }
	another := func(a []float64, b float64) func() error {
		return func() error { _, err := Another(a, b); return err }
	}
	behind := func(a []float64, b float64) func() error {
		return func() error { _, err := MeanBehind(b, a); return err }
	}
	mean := func(a []float64) func() error { return func() error { _, err := MeanOf(a); return err } }
	median := func(a []float64) func() error { return func() error { _, err := Median(a); return err } }
	line := func(x, y, w []float64) func() error { return func() error { _, err := Fit(x, y, w); return err } }
	good, up := []float64{1, 2}, []float64{1, 2, 3}
	for i, c := range []struct {
		does func() error
		want string
	}{
		{welch(good, []float64{2, 3}), ""},
		{welch(nil, good[:1]), none}, {welch(good[:1], nil), one}, {welch(good, nil), none},
		{welch(nan, inf), isNaN}, {welch(inf, nan), isInf}, {welch(good, inf), isInf},
		{welch([]float64{1, 1}, []float64{2, 2}), "fit: neither sample spreads"},
		{welch([]float64{1, 1}, good), ""},
		{another(good, 3), ""}, {another(good[:1], 3), one}, {another(nan, math.Inf(1)), isNaN},
		{another(good, math.Inf(1)), isInf}, {another(inf, math.NaN()), isInf},
		{behind(good, 3), ""}, {behind(good[:1], 3), one}, {behind(nan, math.Inf(1)), isNaN},
		{behind(good, math.Inf(1)), isInf}, {behind(inf, math.NaN()), isInf},
		{mean(good), ""}, {mean(good[:1]), one}, {mean(nil), none}, {mean(nan), isNaN},
		{median([]float64{1, 2, 3, 4, 5, 6}), ""},
		{median([]float64{1, 2, 3, 4, 5}), "fit: 5 values bound no median, want 6 or more"}, {median(inf), isInf},
		{line(up, up, nil), ""},
		{line(up, good, nil), "fit: 3 x, 2 y and 3 weights do not belong together"},
		{line(good, up, up), "fit: 2 x, 3 y and 3 weights do not belong together"},
		{line(up, up, good), "fit: 3 x, 3 y and 2 weights do not belong together"},
		{line(good, good, good), "fit: a line through 2 points has no error to be known by, want 3 or more"},
		{line(append(nan[:2:2], 3), append(inf[:2:2], 3), nil), isNaN},
		{line(append(inf[:2:2], 3), append(nan[:2:2], 3), nil), isInf},
		{line(up, append(inf[:2:2], 3), append(nan[:2:2], 3)), isInf},
		{line(up, append(nan[:2:2], 3), append(inf[:2:2], 3)), isNaN},
		{line(up, up, []float64{1, 0, 1}), "fit: weight 0: want weights above 0"},
		{line(up, up, []float64{1, 2, -1}), "fit: weight -1: want weights above 0"},
		{line([]float64{4, 4, 4}, up, nil), "fit: all points have the same x: no line goes through them"},
	} {
		got := ""
		if err := c.does(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d: %s, want %s", i, got, c.want)
		}
	}
}

// TestWithoutSpread: values that do not differ show what lies inside of the limits, contradict what lies beyond, and
// leave
// open what lies on one.
func TestWithoutSpread(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      Verdict
	}{{1, 9, Shown}, {6, 9, Contradicted}, {1, 4, Contradicted}, {1, 5, Open}, {5, 9, Open}} {
		if got := (Mean{5, 0, 3}).Claim(c.low, c.high); got != c.want {
			t.Errorf("5 in %v to %v is %s, want %s", c.low, c.high, got, c.want)
		}
	}
	l, err := Fit([]float64{1, 2, 3}, []float64{7, 7, 7}, nil)
	if err != nil || l.R2 != 0 || l.SlopeP != 1 {
		t.Errorf("%v, R2 %v, p %v; want 0 and 1", err, l.R2, l.SlopeP)
	}
	for _, c := range [][2]float64{{0, 0.5}, {math.Inf(1), 0}, {math.Inf(-1), 1}} {
		if got := student(4).Survival(c[0]); got != c[1] {
			t.Errorf("above %v: %v, want %v", c[0], got, c[1])
		}
	}
}
