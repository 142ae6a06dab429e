// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

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
	ma, va := stat.MeanVariance(a, nil)
	mb, vb := stat.MeanVariance(b, nil)
	va, vb = va/float64(len(a)), vb/float64(len(b))
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
	return Mean{stat.Mean(values, nil), stat.StdDev(values, nil) / math.Sqrt(n), n - 1}, nil
}

// MeanBehind is the mean behind a single value, when such values spread like
// others that are known, whatever the mean of those.
func MeanBehind(one float64, like []float64) (Mean, error) {
	if err := two(like, []float64{one, one}); err != nil {
		return Mean{}, err
	}
	return Mean{one, stat.StdDev(like, nil), float64(len(like) - 1)}, nil
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
	se := stat.StdDev(values, nil) * math.Sqrt(1+1/n)
	m := stat.Mean(values, nil)
	t := (one - m) / se
	return Test{"t-test of one more value", t, n - 1, twoSided(t, n-1), around(m, se, n-1)}, nil
}

// Holm makes p-values of several tests larger, so that each can be read as if it
// were the only one: S. Holm, "A simple sequentially rejective multiple test
// procedure", Scandinavian Journal of Statistics 6, 1979.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if p[a] < p[b] {
			return -1
		}
		if p[a] > p[b] {
			return 1
		}
		return 0
	})
	out, most := make([]float64, len(p)), 0.0
	for rank, i := range order {
		most = max(most, min(1, p[i]*float64(len(p)-rank)))
		out[i] = most
	}
	return out
}
