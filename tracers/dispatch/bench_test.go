// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

var long = flag.Bool("long", false, "measure the slopes that BenchmarkDispatch prints as a test too")

// BenchmarkDispatch calls through every way with the tracers of the seed's layout.
func BenchmarkDispatch(b *testing.B) {
	for _, k := range kinds {
		for _, l := range k.layout() {
			b.Run(fmt.Sprintf("%s/relevant=%d/irrelevant=%d", k.Name, l[0], l[1]), func(b *testing.B) {
				w, ctx := sample(b, k, l[0], l[1]), &Task{}
				b.ReportAllocs()
				for b.Loop() {
					w.Call(0, ctx)
				}
				c, _ := counted(w, 0, 1)
				b.ReportMetric(float64(c.Loads), "loads/op")
				b.ReportMetric(float64(c.Walked), "walked/op")
			})
		}
	}
}

// BenchmarkDispatchSlope prints what an irrelevant tracer adds to a call.
func BenchmarkDispatchSlope(b *testing.B) {
	for _, name := range []string{"call-ops", "list"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				f := slope(b, name)
				b.ReportMetric(f.slope*1000, "ps/tracer")
				b.Logf("%s: %s", name, f)
			}
		})
	}
}

// line is a fit of time over irrelevant tracers.
type line struct{ intercept, slope, low, high, r2 float64 }

func (f line) String() string {
	return fmt.Sprintf("%.2f ns + %.4f ns a tracer (95 %%: %.4f to %.4f), R2 %.4f", f.intercept, f.slope, f.low,
		f.high, f.r2)
}

// slope measures calls with one tracer that matters among up to 200 that do not. Each
// point is the fastest of a few short measurements, and points are taken in turns: what
// else the machine does slows down, and slows down all of them.
func slope(t testing.TB, name string) line {
	k, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	x := []float64{0, 1, 2, 10, 25, 50, 75, 100, 125, 150, 175, 200}
	y := make([]float64, len(x))
	var ways []*Way
	for i, n := range x {
		ways, y[i] = append(ways, sample(t, k, 1, int(n))), math.Inf(1)
	}
	ctx := &Task{}
	const calls, turns = 2000, 40
	for range turns {
		for i, w := range ways {
			start := time.Now()
			for range calls {
				w.Call(0, ctx)
			}
			y[i] = min(y[i], float64(time.Since(start).Nanoseconds())/calls)
		}
	}
	return fit(x, y)
}

// fit is least squares with the interval of the slope by Student's t.
func fit(x, y []float64) line {
	a, b := stat.LinearRegression(x, y, nil, false)
	n, mean := float64(len(x)), stat.Mean(x, nil)
	var residual, spread float64
	for i := range x {
		residual += (y[i] - a - b*x[i]) * (y[i] - a - b*x[i])
		spread += (x[i] - mean) * (x[i] - mean)
	}
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Quantile(0.975) * math.Sqrt(residual/(n-2)/spread)
	return line{a, b, b - half, b + half, stat.RSquared(x, y, nil, a, b)}
}

// TestSlope: tracers of other functions make no difference to a call that finds its ops
// at the site, and make one that walks the list longer, each by as much. Times are this
// machine's: one of a few attempts has to see it.
func TestSlope(t *testing.T) {
	if !*long {
		t.Skip("-long measures")
	}
	flat, linear := func(f line) bool { return f.low <= 0 && 0 <= f.high }, func(f line) bool {
		return f.r2 > 0.98 &&
			f.low > 0
	}
	for name, ok := range map[string]func(line) bool{"call-ops": flat, "list": linear} {
		var seen []string
		if !slices.ContainsFunc(make([]struct{}, 5), func(struct{}) bool {
			f := slope(t, name)
			seen = append(seen, f.String())
			return ok(f)
		}) {
			t.Errorf("%s: %v", name, seen)
		}
		t.Log(name, seen)
	}
}

// TestFit holds the fit against a line with known residuals: 1, -1, -1, 1 around 3 + 2x
// leave both as they are, and the slope's standard error is sqrt(4/2/5).
func TestFit(t *testing.T) {
	f := fit([]float64{1, 2, 3, 4}, []float64{6, 6, 8, 12})
	half := 4.302652729911275 * math.Sqrt(4.0/2/5) // Student's t for 2 degrees of freedom, 97.5 %
	for i, got := range []float64{f.intercept - 3, f.slope - 2, f.low - 2 + half, f.high - 2 - half} {
		if math.Abs(got) > 1e-9 {
			t.Errorf("%d: off by %v in %+v", i, got, f)
		}
	}
}
