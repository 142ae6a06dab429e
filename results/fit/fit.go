// SPDX-License-Identifier: Apache-2.0

// Package fit draws lines through measurements and tests claims about them. Every result comes with
// its quality: intervals, residuals, the error of held-out points, p-values. Intervals hold with 95
// % confidence.
package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Confidence is that of all intervals.
const Confidence = 0.95

// Estimate is a value and the interval that holds the true one. SE is its
// standard error; 0 where the interval is from order statistics.
type Estimate struct {
	Value, SE, Low, High float64
}

// Apply carries an estimate through a function that grows, such as math.Exp. The
// standard error is lost.
func (e Estimate) Apply(f func(float64) float64) Estimate {
	return Estimate{Value: f(e.Value), Low: f(e.Low), High: f(e.High)}
}

// student is the t distribution with that many degrees of freedom.
func student(df float64) distuv.StudentsT { return distuv.StudentsT{Sigma: 1, Nu: df} }

// around is the interval of a value whose error follows the t distribution.
func around(value, se, df float64) Estimate {
	half := -se * student(df).Quantile((1-Confidence)/2)
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

// Test is what a test comes to. P is how often chance alone does what was seen,
// or more, when what is tested holds.
type Test struct {
	Name          string
	Statistic, DF float64 // DF is 0 where there is none
	P             float64
	Estimate      Estimate // of the difference or the mean; zero where a test has none
}

// two are samples of at least two values.
func two(samples ...[]float64) error {
	for _, s := range samples {
		if len(s) < 2 {
			return fmt.Errorf("fit: a sample of %d says nothing of how it spreads, want 2 or more", len(s))
		}
	}
	return finite(samples...)
}

// Welch tests whether two independent samples have the same mean, whatever their
// variances: B. L. Welch, "The generalization of Student's problem when several
// different population variances are involved", Biometrika 34, 1947. They are
// taken to spread like the normal distribution. The estimate is mean of a less
// mean of b.
func Welch(a, b []float64) (Test, error) {
	if err := two(a, b); err != nil {
		return Test{}, err
	}
	ma, sa := stat.MeanStdDev(a, nil)
	mb, sb := stat.MeanStdDev(b, nil)
	va, vb := sa*sa/float64(len(a)), sb*sb/float64(len(b))
	if va+vb == 0 {
		return Test{}, fmt.Errorf("fit: neither sample spreads")
	}
	df := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	t := (ma - mb) / math.Sqrt(va+vb)
	return Test{"Welch's t-test", t, df, twoSided(t, df), around(ma-mb, math.Sqrt(va+vb), df)}, nil
}

// Mean is an estimate of the mean behind some values, which are taken to spread
// like the normal distribution. DF is what SE is known by.
type Mean struct{ Value, SE, DF float64 }

// MeanOf is the mean behind values: Student, "The probable error of a mean",
// Biometrika 6, 1908. Of differences of pairs its tests are the paired tests.
func MeanOf(values []float64) (Mean, error) {
	if err := two(values); err != nil {
		return Mean{}, err
	}
	n := float64(len(values))
	mean, sd := stat.MeanStdDev(values, nil)
	return Mean{mean, sd / math.Sqrt(n), n - 1}, nil
}

// MeanBehind is the mean behind a single value, when such values spread like
// others that are known, whatever the mean of those.
func MeanBehind(one float64, like []float64) (Mean, error) {
	if err := two(like, []float64{one, one}); err != nil {
		return Mean{}, err
	}
	_, sd := stat.MeanStdDev(like, nil)
	return Mean{one, sd, float64(len(like) - 1)}, nil
}

// Interval is the interval that holds the mean.
func (m Mean) Interval() Estimate { return around(m.Value, m.SE, m.DF) }

// Differs tests whether the mean is another than that.
func (m Mean) Differs(from float64) Test {
	t := (m.Value - from) / m.SE
	return Test{"Student's t-test", t, m.DF, twoSided(t, m.DF), m.Interval()}
}

// Within tests whether the mean lies between low and high: two one-sided tests of
// the hypotheses that it does not, D. J. Schuirmann, "A comparison of the two
// one-sided tests procedure and the power approach", Journal of Pharmacokinetics
// and Biopharmaceutics 15, 1987. A small P says that it does: below 0.05 when the
// interval of 90 % lies inside. A difference that is not significant says no such
// thing.
func (m Mean) Within(low, high float64) Test {
	t := min((m.Value-low)/m.SE, (high-m.Value)/m.SE)
	p := student(m.DF).Survival(t)
	if math.IsNaN(t) {
		p = 1
	}
	return Test{"two one-sided t-tests", t, m.DF, p, m.Interval()}
}

// Verdict of a claim.
type Verdict string

// The verdicts.
const (
	Shown        Verdict = "shown"        // it holds
	Contradicted Verdict = "contradicted" // it does not
	Open         Verdict = "open"         // the figures cannot tell
)

// Claim judges that the mean lies between low and high: it is shown where [Mean.Within]
// says so, and contradicted where the whole interval lies outside.
func (m Mean) Claim(low, high float64) Verdict {
	switch i := m.Interval(); {
	case m.Within(low, high).P < 1-Confidence:
		return Shown
	case i.Low > high || i.High < low:
		return Contradicted
	}
	return Open
}

// Another tests whether one more value comes from where the others do: it differs
// from their mean as a prediction does.
func Another(values []float64, one float64) (Test, error) {
	if err := two(values, []float64{one, one}); err != nil {
		return Test{}, err
	}
	n := float64(len(values))
	m, sd := stat.MeanStdDev(values, nil)
	se := sd * math.Sqrt(1+1/n)
	t := (one - m) / se
	return Test{"t-test of one more value", t, n - 1, twoSided(t, n-1), around(m, se, n-1)}, nil
}

// Holm makes p-values of several tests larger, so that each can be read as if it
// were the only one: S. Holm, "A simple sequentially rejective multiple test
// procedure", Scandinavian Journal of Statistics 6, 1979.
func Holm(p []float64) []float64 {
	order := spelling.Numbers(len(p))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	out, most := make([]float64, len(p)), 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		out[i] = most
	}
	return out
}

// Line is the straight line of least squares through some points. The formulas
// are those of Draper and Smith, Applied Regression Analysis, 3rd edition, 1998:
// chapter 1 for the estimates, their errors and predictions, section 9.2 with
// weights.
type Line struct {
	N          int
	Intercept  Estimate
	Slope      Estimate
	SlopeP     float64 // of the hypothesis that the slope is 0
	R2         float64 // share of the variation that the line explains; 0 when there is none
	ResidualSD float64 // standard deviation around the line, of a point of weight 1
	Residuals  []float64

	centre, spread, weight float64 // weighted mean of x, sum of squares around it, sum of weights
}

// Relative is the weights of values whose errors are in proportion to themselves:
// a times that is measured to 1 % is off by 1 ns at 100 ns, and by 100 ns at 10 us.
func Relative(y []float64) []float64 {
	return spelling.Each(y, func(v float64) float64 { return 1 / (v * v) })
}

// Fit draws the line through the points (x, y). A point of weight 4 is taken to
// be off by half as much as one of weight 1; nil: all are worth the same.
func Fit(x, y, weights []float64) (*Line, error) {
	if weights == nil {
		weights = slices.Repeat([]float64{1}, len(x))
	}
	if err := check(x, y, weights); err != nil {
		return nil, err
	}
	l := &Line{N: len(x), centre: stat.Mean(x, weights)}
	for i := range x {
		l.weight += weights[i]
		l.spread += weights[i] * (x[i] - l.centre) * (x[i] - l.centre)
	}
	if l.spread == 0 {
		return nil, errors.New("fit: all points have the same x: no line goes through them")
	}
	a, b := LeastSquares(x, y, weights)
	squares, all, mean := 0.0, 0.0, stat.Mean(y, weights)
	for i := range x {
		r := y[i] - (a + b*x[i])
		l.Residuals = append(l.Residuals, r)
		squares += weights[i] * r * r
		all += weights[i] * (y[i] - mean) * (y[i] - mean)
	}
	df := l.df()
	l.ResidualSD = math.Sqrt(squares / df)
	l.Intercept = around(a, l.ResidualSD*math.Sqrt(1/l.weight+l.centre*l.centre/l.spread), df)
	l.Slope = around(b, l.ResidualSD/math.Sqrt(l.spread), df)
	l.SlopeP = twoSided(b/l.Slope.SE, df)
	if all > 0 {
		l.R2 = 1 - squares/all
	}
	return l, nil
}

func check(x, y, weights []float64) error {
	if len(x) != len(y) || len(x) != len(weights) {
		return fmt.Errorf("fit: %d x, %d y and %d weights do not belong together", len(x), len(y), len(weights))
	}
	if len(x) < 3 {
		return fmt.Errorf("fit: a line through %d points has no error to be known by, want 3 or more", len(x))
	}
	if err := finite(x, y, weights); err != nil {
		return err
	}
	if slices.Min(weights) <= 0 {
		return fmt.Errorf("fit: weight %v: want weights above 0", slices.Min(weights))
	}
	return nil
}

// df is the degrees of freedom that are left.
func (l *Line) df() float64 { return float64(l.N - 2) }

// At is the line's value at x.
func (l *Line) At(x float64) float64 { return l.Intercept.Value + l.Slope.Value*x }

// Predict is what one more measurement of that weight comes to at x, and the
// interval that it falls into.
func (l *Line) Predict(x, weight float64) Estimate {
	off := x - l.centre
	se := l.ResidualSD * math.Sqrt(1/weight+1/l.weight+off*off/l.spread)
	return around(l.At(x), se, l.df())
}

// LeastSquares is the straight line through two points or more. weights may be nil. That of stat fails where they add
// up to 1.
func LeastSquares(x, y, weights []float64) (intercept, slope float64) {
	mx, my := stat.Mean(x, weights), stat.Mean(y, weights)
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
