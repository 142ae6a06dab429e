package callops

import (
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results/fit"
)

func (a *answer) sheets() (out []experiments.Sheet) {
	for _, kernel := range []string{published.WithoutCallOps, published.WithCallOps} {
		if s := a.matrix(kernel); len(s.Rows) > 0 {
			out = append(out, s)
		}
	}
	out = append(out, a.fitSheet())
	if s := a.claimSheet(); len(s.Rows) > 0 {
		out = append(out, s)
	}
	return append(out, a.shapeSheet())
}

// matrix is one kernel's rows in the layout of the mails.
func (a *answer) matrix(kernel string) experiments.Sheet {
	s := experiments.Sheet{Title: kernel, Columns: []string{"relevant", "irrelevant", "loads", "walked", "called"}}
	if !a.noTime {
		s.Columns = append(s.Columns, "here, ns", "95 % interval")
	}
	s.Columns = append(s.Columns, "published, ns", "overhead, ns", "line", "predicted, ns", "95 % interval", "error")
	for _, r := range a.rows {
		if r.Kernel != kernel {
			continue
		}
		cells := []string{fmt.Sprint(r.Relevant), fmt.Sprint(r.Irrelevant), fmt.Sprint(r.counts.loads), fmt.Sprint(r.counts.walked), fmt.Sprint(r.counts.called)}
		if !a.noTime {
			cells = append(cells, fmt.Sprintf("%.1f", r.live.Value), fmt.Sprintf("%.1f to %.1f", r.live.Low, r.live.High))
		}
		cells = append(cells, fmt.Sprintf("%.1f", r.perCall))
		switch {
		case r.path == nil:
			cells = append(cells, "", "", "", "", "")
		case r.path.line == nil:
			cells = append(cells, fmt.Sprintf("%.1f", r.overhead), r.path.name, "", "", "")
		default:
			line, interval, off := r.path.name, "", ""
			if r.held {
				line, interval = r.path.name+", held out", fmt.Sprintf("%.0f to %.0f", r.prediction.Low, r.prediction.High)
			}
			if e, ok := r.errorPercent().(float64); ok {
				off = fmt.Sprintf("%+.1f %%", e)
			}
			cells = append(cells, fmt.Sprintf("%.1f", r.overhead), line, fmt.Sprintf("%.1f", r.prediction.Value), interval, off)
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

func (a *answer) fitSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "Lines through the published rows that are not held out", Columns: []string{"line", "rows", "intercept, ns", "95 % interval", "each tracer adds, ns", "95 % interval", "p: nothing", "R2", "rows off by, sd", "what it is"}}
	for _, p := range a.paths {
		if p.line == nil {
			s.Rows = append(s.Rows, []string{p.name, "", "", "", "", "", "", "", "", p.why})
			continue
		}
		l := p.line
		s.Rows = append(s.Rows, []string{
			p.name, fmt.Sprint(l.N), fmt.Sprintf("%.1f", l.Intercept.Value), span(l.Intercept, 1), fmt.Sprintf("%.2f", l.Slope.Value), span(l.Slope, 2),
			experiments.P(l.SlopeP), fmt.Sprintf("%.5f", l.R2), fmt.Sprintf("%.1f %%", 100*l.ResidualSD), p.doc,
		})
	}
	return s
}

// span is an interval with so many digits.
func span(e fit.Estimate, digits int) string {
	return fmt.Sprintf("%.*f to %.*f", digits, e.Low, digits, e.High)
}

func (a *answer) claimSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "The claims of the mail", Columns: []string{"claim", "found", "hypothesis", "p", "verdict"}}
	for _, j := range []*judged{judgeConstant(a.rows), judgeThird(a.rows)} {
		if j != nil {
			s.Rows = append(s.Rows, []string{j.claim, j.found, j.test, experiments.P(j.p), string(j.verdict)})
		}
	}
	return s
}

// liveLine is the line through this machine's times of one kernel against tracers
// of another function; nil if it was not timed.
func (a *answer) liveLine(kernel string, relative bool) *fit.Line {
	var x, y []float64
	for _, r := range a.rows {
		if r.timed && r.Kernel == kernel && r.Block == published.Irrelevant1 {
			x, y = append(x, float64(r.Irrelevant)), append(y, r.live.Value)
		}
	}
	var weights []float64
	if relative {
		weights = fit.Relative(y)
	}
	l, err := fit.Fit(x, y, weights)
	if err != nil {
		return nil
	}
	return l
}

// liveLines says whether this machine's times are flat or linear.
func (a *answer) liveLines() string {
	list, literal := a.liveLine(published.WithoutCallOps, true), a.liveLine(published.WithCallOps, false)
	if list == nil || literal == nil {
		return ""
	}
	flat := "which does not contain 0"
	if literal.Slope.Holds(0) {
		flat = "which contains 0"
	}
	return fmt.Sprintf("On this machine an unrelated tracer adds %.2f ns over the list (%s, R2 %.4f, p %s), and %+.4f ns with a literal (%s, %s; p %s).",
		list.Slope.Value, span(list.Slope, 2), list.R2, experiments.P(list.SlopeP), literal.Slope.Value, span(literal.Slope, 4), flat, experiments.P(literal.SlopeP))
}

// shape is what a machine's times are like: overheads of one tracer, and what more
// of them add.
type shape struct {
	machine            string
	list, literal      float64 // one tracer, in ns
	unrelated, related float64 // another one over the list adds, in ns
	beside             float64 // an unrelated one with a literal adds
}

// shapesOf are the shapes of the published table, of the M1 and of this machine.
func (a *answer) shapesOf() (out []shape) {
	list := a.find(published.WithoutCallOps, published.Irrelevant1, 1, 0)
	literal := a.find(published.WithCallOps, published.Irrelevant1, 1, 0)
	if skip, call, flat := a.line("skip"), a.line("call"), a.line("literal"); skip != nil && call != nil && flat != nil && list != nil && literal != nil {
		machine := "the published table"
		if a.file == "" {
			machine = "RISC-V on QEMU"
		}
		out = append(out, shape{machine, list.overhead, literal.overhead, skip.line.Slope.Value, call.line.Slope.Value, flat.line.Slope.Value})
	}
	m1 := func(kernel string, relevant, irrelevant int) float64 {
		for _, t := range a.m1 {
			if t.Kernel == kernel && t.Relevant == relevant && t.Irrelevant == irrelevant {
				return t.OverheadNS
			}
		}
		return 0
	}
	one, own := m1(published.WithoutCallOps, 1, 0), m1(published.WithCallOps, 1, 0)
	out = append(out, shape{"Apple M1", one, own,
		(m1(published.WithoutCallOps, 1, 100) - one) / 100, (m1(published.WithoutCallOps, 100, 0) - one) / 99, (m1(published.WithCallOps, 1, 100) - own) / 100})
	untraced := a.find(published.WithoutCallOps, published.Irrelevant0, 0, 0)
	many := a.find(published.WithoutCallOps, published.RelevantBlock, 100, 0)
	l, flat := a.liveLine(published.WithoutCallOps, true), a.liveLine(published.WithCallOps, false)
	if l != nil && flat != nil && untraced != nil && list != nil && literal != nil && many != nil {
		base := untraced.live.Value
		out = append(out, shape{"this machine", list.live.Value - base, literal.live.Value - base, l.Slope.Value, (many.live.Value - list.live.Value) / 99, flat.Slope.Value})
	}
	return out
}

// shapes says what differs between machines: not times, but proportions.
func (a *answer) shapes() string {
	var parts []string
	for _, s := range a.shapesOf() {
		parts = append(parts, fmt.Sprintf("%.0f times (%s)", 1+100*s.unrelated/s.list, s.machine))
	}
	return "How much unrelated tracers hurt over the list is a question of what the rest of a call costs: a hundred of them make its overhead larger: " + strings.Join(parts, ", ") + ". With a literal the shape is the same everywhere: flat. Shapes of the M1 are from the figures of its commit, " + published.M1Calls.Source + "."
}

// shapeSheet is the shapes.
func (a *answer) shapeSheet() experiments.Sheet {
	s := experiments.Sheet{Title: "How shapes differ", Columns: []string{"machine", "one tracer, list, ns", "with a literal, ns", "of the list",
		"an unrelated tracer adds, list, ns", "of one tracer", "a relevant one adds, ns", "of one tracer", "an unrelated one adds, literal, ns"}}
	for _, m := range a.shapesOf() {
		s.Rows = append(s.Rows, []string{m.machine, fmt.Sprintf("%.2f", m.list), fmt.Sprintf("%.2f", m.literal), fmt.Sprintf("%.3f", m.literal/m.list),
			fmt.Sprintf("%.2f", m.unrelated), fmt.Sprintf("%.3f", m.unrelated/m.list), fmt.Sprintf("%.2f", m.related), fmt.Sprintf("%.3f", m.related/m.list), fmt.Sprintf("%+.4f", m.beside)})
	}
	return s
}
