package trigger

import (
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows, and the claims put to the tables.
type answer struct {
	*request
	runCount int
	rows     []*row
	claims   []*judged
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	r.Headline = a.headline()
	r.Answer = []string{a.inTime(), a.spreads(), a.tables()}
	r.Sheets = []experiments.Sheet{a.timeSheet(), a.claimSheet(), a.apartSheet()}
	r.Measured = []string{
		"Nothing: all figures are published ones, and what follows from them. One turn of the loop takes 1000 / mps nanoseconds; kernel-count is the same loop with nobody attached.",
		fmt.Sprintf("Claims: ratios of the %d runs, each against the other mechanism of the same run, as logarithms. \"About\" and \"almost the same\" mean within %g points of throughput, and hold where two one-sided t-tests "+
			"refuse that they are off by more (p below 0.05). Each claim is a question of its own; the p-values of the tables against each other are corrected (Holm).", a.runCount, a.margin),
	}
	r.Modelled = []string{
		"The one run of everything is taken to be off by as much as each of the others is; its own \"±\" is the spread over the seconds of one run.",
		"Runs are taken to spread like the normal distribution, in logarithms; of a handful nothing better can be known.",
	}
	r.Beside = a.beside()
	return experiments.NewAnswer(name, r, a.chart().Picture(), results.Document{Name: "claims.csv", Write: func(w io.Writer) error {
		t, err := claimsTable(a.claims)
		if err != nil {
			return err
		}
		return results.WriteCSV(w, t)
	}})
}

func (a *answer) headline() string {
	count := map[fit.Verdict]int{}
	for _, j := range a.claims {
		if j.table == tableRuns {
			count[j.verdict]++
		}
	}
	text := fmt.Sprintf("Of %d claims the runs show %d, contradict %d and leave %d open", len(claims), count[fit.Shown], count[fit.Contradicted], count[fit.Open])
	if f, k := a.find(published.Fentry), a.find("kprobe"); f != nil && k != nil {
		text = fmt.Sprintf("A call takes %.1f ns more with a program on fentry, %.1f ns with one on a kprobe; of %d claims the runs show %d, contradict %d and leave %d open",
			f.callNS, k.callNS, len(claims), count[fit.Shown], count[fit.Contradicted], count[fit.Open])
	}
	return text
}

// beside is the claims and what the runs say.
func (a *answer) beside() (out []experiments.Beside) {
	for _, j := range a.claims {
		if j.table == tableRuns {
			out = append(out, experiments.Beside{What: j.text + ", per cent of throughput", Published: j.claim.percent, Ours: j.percent.Value, Source: published.TriggerRuns.Source})
		}
	}
	return out
}

func (a *answer) find(mechanism string) *row {
	for _, r := range a.rows {
		if r.Mechanism == mechanism {
			return r
		}
	}
	return nil
}

// inTime says what per cents of throughput mean in time.
func (a *answer) inTime() string {
	var parts []string
	for _, j := range a.claims {
		if j.inCalls && j.claim.percent != 0 {
			parts = append(parts, fmt.Sprintf("%s: throughput %+.1f %%, time of a call %+.1f %%", j.mechanism, j.percent.Value, j.callPercent))
		}
	}
	if len(parts) == 0 {
		return "Per cents of throughput are not per cents of time: the loop itself takes part of each turn."
	}
	return "Per cents of throughput are not per cents of time, and the loop itself takes part of each turn. In the one run: " + strings.Join(parts, "; ") + "."
}

// spreads says what the published ± leaves out.
func (a *answer) spreads() string {
	least, most := 0.0, 0.0
	for _, r := range a.rows {
		if !r.known || r.PlusMinus == 0 {
			continue
		}
		ratio := r.runs.percent / 100 * r.runs.mean / r.PlusMinus
		if most == 0 {
			least, most = ratio, ratio
		}
		least, most = min(least, ratio), max(most, ratio)
	}
	return fmt.Sprintf("What differs from run to run is %.0f to %.0f times the published \"±\", which is the spread over the seconds of one run. Judged by that \"±\" every difference would be significant, and none would be known to come again.", least, most)
}

// tables says whether the two tables agree.
func (a *answer) tables() string {
	var apart []string
	known := 0
	for _, r := range a.rows {
		if r.known {
			known++
		}
		if r.known && r.apartP < 0.05 {
			apart = append(apart, fmt.Sprintf("%s (%+.1f %%, p %s)", r.Mechanism, r.apart(), experiments.P(r.apartP)))
		}
	}
	if len(apart) == 0 {
		return fmt.Sprintf("Nothing in the one run says that it is not one more of the others, in any of %d mechanisms.", known)
	}
	return "The one run is not one more of the others: " + strings.Join(apart, ", ") + "."
}

func (a *answer) timeSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Throughput and time", Columns: []string{"mechanism", "M/s", "±", "ns a turn", "ns a call"}}
	for _, r := range a.rows {
		call := ""
		if !r.loop {
			call = fmt.Sprintf("%.2f", r.callNS)
		}
		s.Rows = append(s.Rows, []string{r.Mechanism, fmt.Sprintf("%.3f", r.MPS), fmt.Sprintf("%.3f", r.PlusMinus), fmt.Sprintf("%.2f", r.NS()), call})
	}
	return s
}

func (a *answer) claimSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The claims", Columns: []string{"claim", "table", "found, %", "95 % interval", "p: no difference", "p: exactly that", "p: off by more", "verdict"}}
	for _, j := range a.claims {
		s.Rows = append(s.Rows, []string{
			j.text, j.table, fmt.Sprintf("%+.2f", j.percent.Value), fmt.Sprintf("%+.2f to %+.2f", j.percent.Low, j.percent.High),
			experiments.P(j.nothing), experiments.P(j.exactly), experiments.P(j.outside), string(j.verdict),
		})
	}
	return s
}

func (a *answer) apartSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The one run against the others", Columns: []string{"mechanism", "M/s, one run", "M/s, runs", "spread of the runs, %", "one run off by, %", "p (Holm)"}}
	for _, r := range a.rows {
		if r.known {
			s.Rows = append(s.Rows, []string{r.Mechanism, fmt.Sprintf("%.3f", r.MPS), fmt.Sprintf("%.3f", r.runs.mean), fmt.Sprintf("%.2f", r.runs.percent), fmt.Sprintf("%+.2f", r.apart()), experiments.P(r.apartP)})
		}
	}
	return s
}

// chart is the time of a call by mechanism.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "What a program costs each call, by the way it is attached", Alone: true,
		Subtitle: "published throughput turned into time, less the loop with nobody attached",
		X:        plots.Axis{Label: "time of a call (ns)"}, Y: plots.Axis{Names: []string{}},
	}
	one := plots.Series{Name: "on one function", Kind: plots.Lying}
	multi := plots.Series{Name: "multi form, on one function or all", Kind: plots.Lying}
	for _, r := range a.rows {
		if r.loop {
			continue
		}
		to := &one
		if strings.Contains(r.Mechanism, "-multi") {
			to = &multi
		}
		to.X, to.Y = append(to.X, r.callNS), append(to.Y, float64(len(c.Y.Names)))
		to.Labels = append(to.Labels, fmt.Sprintf("%.1f", r.callNS))
		c.Y.Names = append(c.Y.Names, r.Mechanism)
	}
	for _, s := range []plots.Series{one, multi} {
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	c.Height = vg.Length(34+5.5*float64(max(len(c.Y.Names), 4))) * vg.Millimeter
	return c
}
