package trigger

import (
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// Throughputs are compared as ratios: what disturbs a run slows all of it. All
// tests are of logarithms.

// spread is how runs of one mechanism spread.
type spread struct {
	mean    float64 // geometric, in 10^6 calls a second
	percent float64 // standard deviation, of the mean
}

func has(runs []published.TriggerRun, mechanism string) bool {
	_, ok := runs[0].MPS[mechanism]
	return ok
}

// logs are the logarithms of the runs of one mechanism, over those of another; ""
// for none.
func logs(runs []published.TriggerRun, mechanism, over string) (out []float64) {
	for _, r := range runs {
		v := math.Log(r.MPS[mechanism])
		if over != "" {
			v -= math.Log(r.MPS[over])
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
			r.apartP, p = p[0], p[1:]
		}
	}
}

// claim is what the cover letter says.
type claim struct {
	text, mechanism, than string
	percent               float64 // throughput against than's
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
	table                     string
	percent                   fit.Estimate // throughput against than's
	nothing, exactly, outside float64      // p: no difference; exactly as claimed; off by the margin or more
	callPercent               float64      // time of a call against than's, the loop taken off
	inCalls                   bool         // which is known
	verdict                   fit.Verdict
}

// judge puts the claims to both tables: to the runs, pair by pair, and to the one
// run, whose own spread over its seconds leaves out what differs from run to run;
// it is taken to be off by as much as each of the other runs.
func (r *request) judge(triggers []published.Trigger, runs []published.TriggerRun) (out []*judged, err error) {
	for _, c := range claims {
		ratios := logs(runs, c.mechanism, c.than)
		m, err := fit.MeanOf(ratios)
		if err != nil {
			return nil, err
		}
		out = append(out, r.settle(c, tableRuns, m))
		a, b, base := find(triggers, c.mechanism), find(triggers, c.than), find(triggers, published.KernelCount)
		if a == nil || b == nil {
			continue
		}
		if m, err = fit.MeanBehind(math.Log(a.MPS/b.MPS), ratios); err != nil {
			return nil, err
		}
		one := r.settle(c, tableOne, m)
		one.callPercent, one.inCalls = 100*((a.NS()-base.NS())/(b.NS()-base.NS())-1), true
		out = append(out, one)
	}
	return out, nil
}

// settle puts a claim to an estimate of the logarithm of the ratio.
func (r *request) settle(c claim, table string, m fit.Mean) *judged {
	least, most := math.Log1p((c.percent-r.margin)/100), math.Log1p((c.percent+r.margin)/100)
	percent := m.Interval().Apply(func(v float64) float64 { return 100 * math.Expm1(v) })
	j := &judged{
		claim: c, table: table, percent: percent,
		nothing: m.Differs(0).P, exactly: m.Differs(math.Log1p(c.percent / 100)).P,
		outside: m.Within(least, most).P, verdict: m.Claim(least, most),
	}
	return j
}

// claimsTable is all of it.
func claimsTable(all []*judged) (results.Table, error) {
	t := results.Table{Name: "claims", Columns: []results.Column{
		{Name: "claim", Doc: "what the cover letter says"},
		{Name: "table", Doc: "runs: several runs, compared pair by pair; one run: that of everything, with the spread of the others"},
		{Name: "claimed_percent", Doc: "throughput against the other mechanism's, claimed"},
		{Name: "percent", Doc: "and found"},
		{Name: "low_percent", Doc: "lower end of the interval of 95 %"},
		{Name: "high_percent", Doc: "and its upper end"},
		{Name: "p_no_difference", Doc: "p-value of the hypothesis that there is no difference"},
		{Name: "p_as_claimed", Doc: "p-value of the hypothesis that it is exactly as claimed"},
		{Name: "p_off", Doc: "p-value of the hypothesis that it is off by the margin or more: small where the claim holds"},
		{Name: "call_percent", Doc: "the same in time of a call, the loop taken off"},
		{Name: "verdict", Doc: "shown, contradicted, or open: the figures cannot tell"},
	}}
	for _, j := range all {
		call := any(results.Empty)
		if j.inCalls {
			call = j.callPercent
		}
		if err := t.Add(j.text, j.table, j.claim.percent, j.percent.Value, j.percent.Low, j.percent.High, j.nothing, j.exactly, j.outside, call, string(j.verdict)); err != nil {
			return t, err
		}
	}
	return t, nil
}
