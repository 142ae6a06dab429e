// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Average is the mean of values, where weights are given the weighted one.
func Average(values, weights []float64) float64 {
	sum, weight := 0.0, 0.0
	for i, v := range values {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		sum, weight = sum+w*v, weight+w
	}
	return sum / weight
}

// Spread is the mean of values, and the standard deviation of the population that they sample.
func Spread(values []float64) (mean, sd float64) {
	mean = Average(values, nil)
	squares, off := 0.0, 0.0 // off is what the mean was rounded by
	for _, v := range values {
		d := v - mean
		squares, off = squares+d*d, off+d
	}
	n := float64(len(values))
	return mean, math.Sqrt((squares - off*off/n) / (n - 1))
}

// LeastSquares is the straight line through two points or more. weights may be nil.
func LeastSquares(x, y, weights []float64) (intercept, slope float64) {
	mx, my := Average(x, weights), Average(y, weights)
	along, across := 0.0, 0.0
	for i := range x {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		along, across = along+w*(x[i]-mx)*(y[i]-my), across+w*(x[i]-mx)*(x[i]-mx)
	}
	slope = along / across
	return my - slope*mx, slope
}

// student is the t distribution with that many degrees of freedom: Abramowitz and Stegun,
// Handbook of Mathematical Functions, 1964, 26.7.1.
type student float64

// beyond is the probability of a value above t.
func (df student) beyond(t float64) float64 {
	tail := 0.5 * mathext.RegIncBeta(float64(df)/2, 0.5, float64(df)/(t*t+float64(df)))
	if t < 0 {
		return 1 - tail
	}
	return tail
}

// bound is the value above 0 that is exceeded with a probability of less than a half.
func (df student) bound(p float64) float64 {
	t := mathext.InvRegIncBeta(float64(df)/2, 0.5, 2*p)
	return math.Sqrt(float64(df) * (1 - t) / t)
}
