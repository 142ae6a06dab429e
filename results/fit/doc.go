// SPDX-License-Identifier: Apache-2.0

// Package fit draws lines through measurements and tests claims about them. Every result comes with
// its quality: intervals, residuals, the error of held-out points, p-values. Intervals hold with 95
// % confidence.
package fit

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is that of all intervals.
const Confidence = 0.95

// Estimate is a value and the interval that holds the true one. SE is its
// standard error; 0 where the interval is from order statistics.
type Estimate struct {
	Value, SE, Low, High float64
}

// Holds tells whether v lies in the interval.
func (e Estimate) Holds(v float64) bool { return e.Low <= v && v <= e.High }

// Apply carries an estimate through a function that grows, such as math.Exp. The
// standard error is lost.
func (e Estimate) Apply(f func(float64) float64) Estimate {
	return Estimate{Value: f(e.Value), Low: f(e.Low), High: f(e.High)}
}

// student is the t distribution.
func student(df float64) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: df} }

// around is the interval of a value whose error follows the t distribution.
func around(value, se, df float64) Estimate {
	half := se * student(df).Quantile(0.5+Confidence/2)
	return Estimate{value, se, value - half, value + half}
}

// twoSided is the p-value of a t statistic: how often chance alone takes it as far
// from 0. A statistic of 0/0 says nothing against chance.
func twoSided(t, df float64) float64 {
	if math.IsNaN(t) {
		return 1
	}
	return min(1, 2*student(df).Survival(math.Abs(t)))
}

var errNotFinite = errors.New("a value is not finite")

// finite tells whether all values are numbers.
func finite(all ...[]float64) error {
	for _, values := range all {
		if i := slices.IndexFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }); i >= 0 {
			return fmt.Errorf("fit: value %d, %v: %w", i, values[i], errNotFinite)
		}
	}
	return nil
}

// MinMedian is the fewest values that bound their median with 95 % confidence:
// 1 - 2/2^6 is over 0.95, 1 - 2/2^5 is not.
const MinMedian = 6

// Median is the median of at least [MinMedian] values, and an interval from order
// statistics: nothing is assumed about how they spread.
func Median(values []float64) (Estimate, error) {
	if err := finite(values); err != nil {
		return Estimate{}, err
	}
	if len(values) < MinMedian {
		return Estimate{}, fmt.Errorf("fit: %d values bound no median, want %d or more", len(values), MinMedian)
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds),
		Confidence)
	return Estimate{Value: s.Center, Low: s.Lo, High: s.Hi}, nil
}
