// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// near tells whether two numbers agree in so many digits.
func near(got, want float64, digits int) bool {
	return math.Abs(got-want) <= math.Abs(want)*math.Pow(10, -float64(digits))
}

// norris is the data of NIST StRD, linear regression, "Norris" (lower difficulty):
// a calibration of ozone monitors.
var norris = struct{ x, y []float64 }{
	[]float64{0.2, 337.4, 118.2, 884.6, 10.1, 226.5, 666.3, 996.3, 448.6, 777.0, 558.2, 0.4, 0.6, 775.5, 666.9, 338.0,
		447.5, 11.6,
		556.0, 228.1, 995.8, 887.6, 120.2, 0.3, 0.3, 556.8, 339.1, 887.2, 999.0, 779.0, 11.1, 118.3, 229.2, 669.1, 448.9, 0.5},
	[]float64{0.1, 338.8, 118.1, 888.0, 9.2, 228.1, 668.5, 998.5, 449.1, 778.9, 559.2, 0.3, 0.1, 778.1, 668.8, 339.3,
		448.9, 10.8,
		557.7, 228.3, 998.0, 888.8, 119.6, 0.3, 0.6, 557.6, 339.3, 888.0, 998.5, 778.9, 10.2, 117.6, 228.9, 668.4, 449.2, 0.2},
}

// TestNorris: the values that NIST certifies.
func TestNorris(t *testing.T) {
	l, err := Fit(norris.x, norris.y, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"intercept", l.Intercept.Value, -0.262323073774029},
		{"its error", l.Intercept.SE, 0.232818234301152},
		{"slope", l.Slope.Value, 1.00211681802045},
		{"its error", l.Slope.SE, 0.429796848199937e-3},
		{"residual standard deviation", l.ResidualSD, 0.884796396144373},
		{"R2", l.R2, 0.999993745883712},
	} {
		if !near(v.got, v.want, 11) {
			t.Errorf("%s: %.15g, want %.15g", v.name, v.got, v.want)
		}
	}
	if l.SlopeP > 1e-80 || holds(l.Intercept, 1) || !holds(l.Intercept, 0) {
		t.Errorf("%+v", l)
	}
}

// cars is the stopping distances of cars in feet against their speed in miles an
// hour: M. Ezekiel, Methods of Correlation Analysis, 1930; as in R's datasets.
var cars = struct{ x, y []float64 }{
	[]float64{4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16, 17,
		17, 17,
		18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25},
	[]float64{2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26, 54, 32, 40,
		32, 40, 50,
		42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85},
}

// TestCars: intervals, prediction and p-value, as R's lm and predict have them.
func TestCars(t *testing.T) {
	l, err := Fit(cars.x, cars.y, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Predict(10, 1)
	for _, v := range []struct {
		name      string
		got, want float64
		digits    int
	}{
		{"slope", l.Slope.Value, 3.932409, 6}, {"its low end", l.Slope.Low, 3.096964, 6}, {"its high end", l.Slope.High,
			4.767853, 6},
		{"intercept", l.Intercept.Value, -17.57909, 6}, {"its low end", l.Intercept.Low, -31.167850, 6}, {"its high end",
			l.Intercept.High, -3.990340, 6},
		{"R2", l.R2, 0.6510794, 6}, {"p", l.SlopeP, 1.489836e-12, 5},
		{"prediction", p.Value, 21.74499, 6}, {"its low end", p.Low, -9.809601, 6}, {"its high end", p.High, 53.29959, 6},
	} {
		if !near(v.got, v.want, v.digits) {
			t.Errorf("%s: %.8g, want %.8g", v.name, v.got, v.want)
		}
	}
}

// TestWeights holds a fit with weights against normal equations that are solved in
// rational numbers.
func TestWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 12).Draw(t, "n")
		var x, y, w []float64
		s := map[string]*big.Rat{}
		for _, k := range []string{"w", "x", "y", "xx", "xy", "yy"} {
			s[k] = new(big.Rat)
		}
		for range n {
			xi, yi, wi := rapid.IntRange(-50, 200).Draw(t, "x"), rapid.IntRange(-1000, 1000).Draw(t, "y"), rapid.IntRange(1,
				9).Draw(t, "w")
			x, y, w = append(x, float64(xi)), append(y, float64(yi)), append(w, float64(wi))
			for k, v := range map[string]int{"w": wi, "x": wi * xi, "y": wi * yi, "xx": wi * xi * xi, "xy": wi * xi * yi,
				"yy": wi * yi * yi} {
				s[k].Add(s[k], big.NewRat(int64(v), 1))
			}
		}
		mul := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }
		sub := func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
		det := sub(mul(s["w"], s["xx"]), mul(s["x"], s["x"]))
		l, err := Fit(x, y, w)
		if det.Sign() == 0 {
			if err == nil {
				t.Fatal("a line through points above each other")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		b := new(big.Rat).Quo(sub(mul(s["w"], s["xy"]), mul(s["x"], s["y"])), det)
		a := new(big.Rat).Quo(sub(mul(s["xx"], s["y"]), mul(s["x"], s["xy"])), det)
		rss := sub(sub(s["yy"], mul(a, s["y"])), mul(b, s["xy"]))
		variance, _ := new(big.Rat).Quo(rss, big.NewRat(int64(n-2), 1)).Float64()
		unitA, _ := new(big.Rat).Quo(s["xx"], det).Float64()
		unitB, _ := new(big.Rat).Quo(s["w"], det).Float64()
		wantA, _ := a.Float64()
		wantB, _ := b.Float64()
		for _, v := range [][2]float64{
			{l.Intercept.Value, wantA}, {l.Slope.Value, wantB}, {l.ResidualSD, math.Sqrt(variance)},
			{l.Intercept.SE, math.Sqrt(variance * unitA)}, {l.Slope.SE, math.Sqrt(variance * unitB)},
		} {
			if math.Abs(v[0]-v[1]) > 1e-8*(1+math.Abs(v[1])) {
				t.Fatalf("%v, want %v", v[0], v[1])
			}
		}
	})
}

// TestExact: points on a line leave no error, and level points no slope.
func TestExact(t *testing.T) {
	y := []float64{7, 10, 13, 37}
	l, err := Fit([]float64{0, 1, 2, 10}, y, Relative(y))
	if err != nil || !near(l.Slope.Value, 3, 12) || !near(l.Intercept.Value, 7, 12) || !near(l.R2, 1, 12) ||
		l.SlopeP > 1e-9 {
		t.Fatalf("%+v, %v", l, err)
	}
	// 7 + 3 x 100 is 307.
	if p := l.Predict(100, 1.0/(300*300)); !near(p.Value, 307, 9) || holds(p, 300) {
		t.Errorf("%+v", p)
	}
	l, err = Fit([]float64{1, 2, 3}, []float64{5, 5, 5}, nil)
	if err != nil || l.Slope.Value != 0 || l.SlopeP != 1 || l.R2 != 0 || !holds(l.Slope, 0) {
		t.Errorf("level: %+v, %v", l, err)
	}
}

func TestWrong(t *testing.T) {
	nan := math.NaN()
	for want, err := range map[string]error{
		"2 points":                             second(Fit([]float64{1, 2}, []float64{1, 2}, nil)),
		"same x":                               second(Fit([]float64{1, 1, 1}, []float64{1, 2, 3}, nil)),
		"belong":                               second(Fit([]float64{1, 2, 3}, []float64{1, 2}, nil)),
		"not finite":                           second(Fit([]float64{1, 2, nan}, []float64{1, 2, 3}, nil)),
		"weight 0":                             second(Fit([]float64{1, 2, 3}, []float64{1, 2, 3}, []float64{1, 0, 1})),
		"sample of 1":                          second(Welch([]float64{1}, []float64{1, 2})),
		"neither":                              second(Welch([]float64{1, 1}, []float64{1, 1})),
		"bound no":                             second(Median([]float64{1, 2, 3, 4, 5})),
		"2 x, 3 y and 2 weights do not belong": second(Fit([]float64{1, 2}, []float64{1, 2, 3}, []float64{1, 1})),
		"value 0, NaN":                         second(Fit([]float64{nan, 2, 3}, []float64{1, 2, 3}, nil)),
		"value 1, +Inf":                        second(Median([]float64{1, math.Inf(1), 3, 4, 5, 6})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if !errors.Is(second(MeanOf([]float64{1, nan})), errNotFinite) {
		t.Error("NaN was tested")
	}
}

// TestApplied: an estimate goes through a function that grows, and weights are of errors in proportion.
func TestApplied(t *testing.T) {
	e := Estimate{Value: 2, SE: 9, Low: 1, High: 3}.Apply(func(v float64) float64 { return v * v })
	if want := (Estimate{Value: 4, Low: 1, High: 9}); e != want {
		t.Errorf("%+v, want %+v", e, want)
	}
	if w := Relative([]float64{1, 2, 10}); !slices.Equal(w, []float64{1, 0.25, 0.01}) {
		t.Errorf("%v", w)
	}
}

func second[T any](_ T, err error) error { return err }

func holds(e Estimate, v float64) bool { return e.Low <= v && v <= e.High }
