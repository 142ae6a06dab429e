// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
)

// Throughputs are compared as ratios: what disturbs a run slows all of it. All
// tests are of logarithms.

// spread is how runs of one mechanism spread.
type spread struct {
	Mean    float64 // geometric, in 10^6 calls a second
	Percent float64 // standard deviation, of the mean
}

func has(runs []published.TriggerRun, mechanism string) bool {
	_, ok := runs[0].Of(mechanism)
	return ok
}

// logs are the logarithms of the runs of one mechanism, over those of another; ""
// for none.
func logs(runs []published.TriggerRun, mechanism, over string) (out []float64) {
	for _, r := range runs {
		mps, _ := r.Of(mechanism)
		v := math.Log(mps)
		if beside, ok := r.Of(over); ok {
			v -= math.Log(beside)
		}
		out = append(out, v)
	}
	return out
}

// another tests whether a row is one more of some runs.
func another(runs []published.TriggerRun, t published.Trigger) (spread, float64, error) {
	values := logs(runs, t.Mechanism, "")
	mean, sd := stat.MeanStdDev(values, nil)
	test, err := fit.Another(values, math.Log(t.MPS))
	return spread{math.Exp(mean), 100 * math.Expm1(sd)}, test.P, err
}

// share makes the p-values of several rows readable one by one.
func share(rows []*row, p []float64) {
	p = fit.Holm(p)
	for _, r := range rows {
		if r.known {
			r.ApartP, p = p[0], p[1:]
		}
	}
}

// claim is what the cover letter says.
type claim struct {
	Text, Mechanism, than string
	claimed               float64 // throughput against than's
}

// claims of the cover letter of 2025-07-03, which has both tables.
var claims = []claim{
	{"fentry-multi is about 10 % worse than fentry", "fentry-multi", published.Fentry, -10},
	{"fmodret-multi is about 5 % worse than fmodret", "fmodret-multi", "fmodret", -5},
	{"fexit-multi is almost the same as fexit", "fexit-multi", "fexit", 0},
	{"fentry-multi is close to fentry-multi-all, so that the hash is O(1)", "fentry-multi-all", "fentry-multi", 0},
}

// The tables that claims are put to.
const (
	tableRuns = "runs"
	tableOne  = "one run"
)

// judged is a claim put to one table.
type judged struct {
	claim
	Table                     string
	Percent                   fit.Estimate // throughput against than's
	Nothing, Exactly, Outside float64      // p: no difference; exactly as claimed; off by the margin or more
	CallPercent               float64      // time of a call against than's, the loop taken off
	inCalls                   bool         // which is known
	Verdict                   fit.Verdict
}

// judge puts the claims to both tables: to the runs, pair by pair, and to the one
// run, whose own spread over its seconds leaves out what differs from run to run;
// it is taken to be off by as much as each of the other runs.
func (c *Config) judge(triggers []published.Trigger, runs []published.TriggerRun) (out []*judged, err error) {
	for _, x := range claims {
		ratios := logs(runs, x.Mechanism, x.than)
		m, err := fit.MeanOf(ratios)
		if err != nil {
			return nil, err
		}
		out = append(out, c.settle(x, tableRuns, m))
		a, b, base := find(triggers, x.Mechanism), find(triggers, x.than), find(triggers, published.KernelCount)
		if a == nil || b == nil {
			continue
		}
		if m, err = fit.MeanBehind(math.Log(a.MPS/b.MPS), ratios); err != nil {
			return nil, err
		}
		one := c.settle(x, tableOne, m)
		one.CallPercent, one.inCalls = 100*((a.NS()-base.NS())/(b.NS()-base.NS())-1), true
		out = append(out, one)
	}
	return out, nil
}

// settle puts a claim to an estimate of the logarithm of the ratio.
func (c *Config) settle(x claim, table string, m fit.Mean) *judged {
	least, most := math.Log1p((x.claimed-c.Margin)/100), math.Log1p((x.claimed+c.Margin)/100)
	percent := m.Interval().Apply(func(v float64) float64 { return 100 * math.Expm1(v) })
	j := &judged{
		claim: x, Table: table, Percent: percent,
		Nothing: m.Differs(0).P, Exactly: m.Differs(math.Log1p(x.claimed / 100)).P,
		Outside: m.Within(least, most).P, Verdict: m.Claim(least, most),
	}
	return j
}
