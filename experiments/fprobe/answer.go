package fprobe

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished, and the published hits.
type answer struct {
	*request
	asked    int
	rows     []*row
	untraced map[int]fit.Estimate // time of a call that nobody traces, by threads
	hits     []published.Hit
	sum      *sum
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d combinations were measured.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	parts := []string{
		"A program on entry alone pays for the pool only while every return is hooked: once cost 3 is gone, cost 4 costs it nothing. A program on return has its return hooked anyway: cost 3 costs it nothing.",
	}
	if !a.noTime {
		parts = append(parts, a.matters())
	}
	for _, part := range append(parts, a.inTime(), a.added()) {
		if part != "" {
			r.Answer = append(r.Answer, part)
		}
	}
	r.Sheets = []experiments.Sheet{a.ladderSheet(), a.effectSheet(), a.hitSheet()}
	r.Measured = []string{"Loads, entries walked, registers saved and contended words: exactly, by making the call; what is said without making it is the same."}
	if !a.noTime {
		r.Measured = append(r.Measured, fmt.Sprintf("Times on this machine (%s, %s): medians of %d measurements of half a millisecond or more, all combinations in turns, and the interval that holds the median with 95 %% confidence. They are worth their ratios.",
			runtime.GOOS, runtime.GOARCH, a.repeats))
	}
	r.Modelled = []string{
		"fprobe and rethook are this program's own: the same structures, read in the same order. Registers are words that are copied.",
		"The published hits are taken to be shares of the throughput without a program, and their costs not to depend on each other where they are added.",
	}
	r.Beside, r.Notes = a.beside(), a.notes()
	return experiments.NewAnswer(name, r, a.chart().Picture(),
		results.Document{Name: "hits.csv", Write: func(w io.Writer) error {
			t, err := hitsTable(a.hits)
			if err != nil {
				return err
			}
			return results.WriteCSV(w, t)
		}},
		results.Document{Name: "fprobe-hits.svg", Write: func(w io.Writer) error { return plots.WriteSVG(w, hitsChart(a.hits).Picture()) }},
		results.Document{Name: "fprobe-hits.png", Write: func(w io.Writer) error { return plots.WritePNG(w, hitsChart(a.hits).Picture()) }})
}

func (a *answer) headline() string {
	all := groups(a.rows)
	if len(all) == 0 {
		return "No combination was measured"
	}
	g := all[0]
	top, bottom := g.by[combinations-1].counts, g.by[0].counts
	return fmt.Sprintf("For a program on entry the four costs are %d registers saved in place of %d, %d loads in place of %d, and %d contended words in place of %d",
		top.Saved, bottom.Saved, top.Loads, bottom.Loads, top.Atomics, bottom.Atomics)
}

func (a *answer) hit(mechanism string) *published.Hit {
	for i := range a.hits {
		if a.hits[i].Mechanism == mechanism {
			return &a.hits[i]
		}
	}
	return nil
}

// The mechanisms of the published table that are compared.
const (
	direct      = "bpf-on-direct-calls"
	unoptimised = "bpf-on-fprobe-unoptimised"
	optimised   = "bpf-on-fprobe-optimised"
)

// inTime says what the published hits are in time.
func (a *answer) inTime() string {
	d, u, o := a.hit(direct), a.hit(unoptimised), a.hit(optimised)
	if d == nil || u == nil || o == nil || u.Percent == 0 {
		return ""
	}
	return fmt.Sprintf("A hit of p per cent of throughput is time x 1/(1 - p/100). All four optimisations together take %.1f to %.1f per cent of throughput, %.1f points; in time they take %.3f of a turn to %.3f, which is %.0f %% of what fprobe adds. "+
		"What is left is %.3f of a turn more than direct calls, which add %.3f themselves.",
		u.Percent, o.Percent, u.Percent-o.Percent, extra(*u), extra(*o), 100*(1-extra(*o)/extra(*u)), extra(*o)-extra(*d), extra(*d))
}

// added is the sum that was asked for.
func (a *answer) added() string {
	if a.sum == nil {
		return ""
	}
	return fmt.Sprintf("%s, attached together: time x %.3f, a hit of %.1f %%.", strings.Join(a.sum.names, " and "), 1+a.sum.extra, a.sum.percent())
}

func (a *answer) hitSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The published hits as time", Columns: []string{"mechanism", "throughput lost, %", "time of a turn", "time added, %"}}
	for _, h := range a.hits {
		s.Rows = append(s.Rows, []string{h.Mechanism, fmt.Sprintf("%.1f", h.Percent), fmt.Sprintf("x %.3f", h.Slowdown()), fmt.Sprintf("%.1f", 100*extra(h))})
	}
	return s
}

// beside holds what is left of fprobe's time against what is left here.
func (a *answer) beside() (out []experiments.Beside) {
	u, o := a.hit(unoptimised), a.hit(optimised)
	if u == nil || o == nil || a.noTime || extra(*u) == 0 {
		return nil
	}
	source := published.Hits.Source
	if a.file != "" {
		source = a.file
	}
	for _, g := range groups(a.rows) {
		bare := a.untraced[g.threads].Value
		out = append(out, experiments.Beside{
			What:      "time added without the four costs, of that with them: " + g.name(),
			Published: extra(*o) / extra(*u), Ours: (g.by[0].live.Value - bare) / (g.by[combinations-1].live.Value - bare), Source: source,
		})
	}
	return out
}

func (a *answer) notes() []string {
	if a.noTime {
		return nil
	}
	return []string{"Published is a program on another processor, with all that a BPF program takes in it; here is the way to the callback alone. How much each of the four takes there was not published: only both ends of the ladder."}
}

// chart is the ladder in counts.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title: "What is left of a call when the four costs of fprobe go", X: plots.Axis{Names: []string{}}, Y: plots.Axis{Label: "number, for one call and its return"},
		Subtitle: "program on entry; counted: 1 all registers, 2 list function, 3 every return hooked, 4 pool",
	}
	series := []plots.Series{{Name: "registers saved"}, {Name: "loads"}, {Name: "contended words"}}
	for _, g := range groups(a.rows)[:min(1, len(groups(a.rows)))] {
		for i, rung := range rungs() {
			c.X.Names = append(c.X.Names, label(rung))
			n := g.by[rung].counts
			for k, v := range []int64{n.Saved, n.Loads, n.Atomics} {
				s := &series[k]
				s.Kind = plots.Bars
				s.X, s.Y, s.Labels = append(s.X, float64(i)), append(s.Y, float64(v)), append(s.Labels, fmt.Sprint(v))
			}
		}
		c.Series = series
	}
	return c
}
