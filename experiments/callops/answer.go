package callops

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// answer is the rows that were finished, and what follows from them.
type answer struct {
	*request
	asked int
	rows  []*row
	slips []published.Slip
	paths []*path
	m1    []published.CallTime
}

func (a *answer) answer() *experiments.Answer {
	r := experiments.NewReport(name, question)
	if len(a.rows) < a.asked {
		r.CutShort = fmt.Sprintf("%d of %d rows were measured.", len(a.rows), a.asked)
	}
	r.Headline = a.headline()
	for _, part := range []string{
		"A call over the list walks every tracer that is attached anywhere, and looks the function up in the filter of each. With a literal at the site it walks none: the site names its only tracer.",
		a.cliff(), a.off(), a.shapes(), a.slipped(), a.liveLines(),
	} {
		if part != "" {
			r.Answer = append(r.Answer, part)
		}
	}
	r.Sheets = a.sheets()
	r.Measured = []string{"Loads, entries walked and callbacks called: exactly, by making the call; what is said without making it is the same."}
	if !a.noTime {
		r.Measured = append(r.Measured, fmt.Sprintf("Times on this machine (%s, %s): medians of %d measurements of half a millisecond or more, row after row in turns, and the interval that holds the median with 95 %% confidence. They are worth their ratios.",
			runtime.GOOS, runtime.GOARCH, a.repeats))
	}
	r.Modelled = []string{
		"The ways from the site to the tracers are this program's own, not a kernel's: the same structures, read in the same order, in another language.",
		"Predictions take all overheads of a line to be off by the same share of themselves. The intervals are those of one more measurement.",
	}
	r.Beside = a.beside()
	answer := experiments.NewAnswer(name, r, a.chart().Picture(), results.Document{Name: "fits.csv", Write: func(w io.Writer) error {
		t, err := fitsTable(a.lines())
		if err != nil {
			return err
		}
		return results.WriteCSV(w, t)
	}})
	if a.file != "" && len(a.slips) > 0 { // those of the table that comes with the program are known
		answer.No = fmt.Errorf("%s: integers that do not follow from the others: %d; the first: %s", a.file, len(a.slips), a.slips[0])
	}
	return answer
}

// beside is what was held out and what the lines say of it.
func (a *answer) beside() (out []experiments.Beside) {
	source := published.CallCosts.Source
	if a.file != "" {
		source = a.file
	}
	for _, r := range a.rows {
		if r.held && r.path.line != nil {
			out = append(out, experiments.Beside{
				What:      fmt.Sprintf("%s, %d relevant, %d irrelevant: overhead, ns; here predicted", r.Kernel, r.Relevant, r.Irrelevant),
				Published: math.Round(r.overhead), Ours: math.Round(r.prediction.Value), Source: source,
			})
		}
	}
	return out
}

// lines are all lines: through published rows, and through this machine's times.
func (a *answer) lines() (out []named) {
	for _, p := range a.paths {
		if p.line != nil {
			out = append(out, named{p.line, p.name, true})
		}
	}
	if l := a.liveLine(published.WithoutCallOps, true); l != nil {
		out = append(out, named{l, "live list", true})
	}
	if l := a.liveLine(published.WithCallOps, false); l != nil {
		out = append(out, named{l, "live literal", false})
	}
	return out
}

// line is the path of a name, if it has a line.
func (a *answer) line(name string) *path {
	for _, p := range a.paths {
		if p.name == name && p.line != nil {
			return p
		}
	}
	return nil
}

func (a *answer) headline() string {
	skip, literal := a.line("skip"), judgeConstant(a.rows)
	if skip == nil || literal == nil {
		return fmt.Sprintf("%d rows were counted; they make no line of unrelated tracers with and without call_ops", len(a.rows))
	}
	s := skip.line.Slope
	return fmt.Sprintf("Over the list every unrelated tracer adds %.0f ns to a published call (%.0f to %.0f); with a literal at the site the claim that it adds nothing is %s", s.Value, s.Low, s.High, literal.verdict)
}

// find is a row of the matrix; nil if there is none.
func (a *answer) find(kernel, block string, relevant, irrelevant int) *row {
	for _, r := range a.rows {
		if r.Kernel == kernel && r.Block == block && r.Relevant == relevant && r.Irrelevant == irrelevant {
			return r
		}
	}
	return nil
}

// cliff is what the second tracer of a function costs, and why.
func (a *answer) cliff() string {
	one := a.find(published.WithCallOps, published.RelevantBlock, 1, 0)
	two := a.find(published.WithCallOps, published.RelevantBlock, 2, 0)
	if one == nil || two == nil {
		return ""
	}
	text := fmt.Sprintf("The second tracer of a function is a cliff: %.0f ns become %.0f, and %d entries walked become %d. The literal names one ops; for two it names the one whose function walks the list.",
		one.perCall, two.perCall, one.counts.walked, two.counts.walked)
	if without := a.find(published.WithoutCallOps, published.RelevantBlock, 2, 0); without != nil {
		text += fmt.Sprintf(" That is the call of before: %.0f ns without call_ops.", without.perCall)
	}
	if _, n, err := newCell(published.WithCallOps, 2, 100); err == nil {
		text += fmt.Sprintf(" And there unrelated tracers count again: with two of the function and 100 of others a call walks %d entries.", n.walked)
	}
	return text
}

// slipped says what does not follow, and what the lines make of it.
func (a *answer) slipped() string {
	if len(a.slips) == 0 {
		return "Every integer that the table derives from another follows from it."
	}
	var parts []string
	for _, s := range a.slips {
		part := s.String()
		if r := a.atLine(s.Line); r != nil && r.held && r.path.line != nil && s.Column == "overhead_ns" {
			in := "outside"
			if r.prediction.Holds(s.Stated.Float()) {
				in = "inside"
			}
			derived := "outside"
			if r.prediction.Holds(r.overhead) {
				derived = "inside"
			}
			part += fmt.Sprintf("; the line through the other rows says %.0f, %.0f to %.0f: %s lies %s, %s %s", r.prediction.Value, r.prediction.Low, r.prediction.High, s.Stated, in, s.Derived, derived)
			if in == "outside" && derived == "inside" {
				part += ", so that the total is right and what is derived from it a slip"
			}
		}
		parts = append(parts, "- "+part)
	}
	return "Of the integers that the table derives from others, these do not follow:\n\n" + strings.Join(parts, "\n")
}

// off says which predictions do not come true.
func (a *answer) off() string {
	held, worst := 0, 0.0
	var out []string
	for _, r := range a.rows {
		if !r.held || r.path.line == nil {
			continue
		}
		held++
		off, _ := r.errorPercent().(float64)
		worst = max(worst, math.Abs(off))
		if !r.prediction.Holds(r.overhead) {
			out = append(out, fmt.Sprintf("line %d, %s with %d relevant and %d irrelevant tracers (%.0f ns published, %.0f predicted)", r.Line, r.Kernel, r.Relevant, r.Irrelevant, r.overhead, r.prediction.Value))
		}
	}
	if held == 0 {
		return ""
	}
	text := fmt.Sprintf("Of %d rows that were held out, all lie in the interval that was predicted for them; the largest error is %.1f %%.", held, worst)
	if len(out) > 0 {
		text = fmt.Sprintf("Of %d rows that were held out, %d lie in the interval that was predicted for them; the largest error is %.1f %%. Not so: %s.", held, held-len(out), worst, strings.Join(out, "; "))
	}
	return text
}

func (a *answer) atLine(line int) *row {
	for _, r := range a.rows {
		if r.Line == line {
			return r
		}
	}
	return nil
}

// chart is the published overheads against tracers, and the predictions.
func (a *answer) chart() *plots.Chart {
	c := &plots.Chart{
		Title:    "With a literal at the site, who traces other functions makes no difference",
		Subtitle: "published overhead of a call; held out of the lines and predicted by them where there are whiskers (95 %)",
		X:        plots.Axis{Label: "tracers, of others beside one of the function, or of the function", Log: true},
		Y:        plots.Axis{Label: "overhead of a call (ns)", Log: true},
	}
	out := plots.Series{Name: "predicted", Kind: plots.Points}
	lists := []struct {
		name, kernel, block string
	}{
		{"list, tracers of others", published.WithoutCallOps, published.Irrelevant1},
		{"literal, tracers of others", published.WithCallOps, published.Irrelevant1},
		{"list, tracers of the function", published.WithoutCallOps, published.RelevantBlock},
		{"literal, tracers of the function", published.WithCallOps, published.RelevantBlock},
	}
	for _, l := range lists {
		s := plots.Series{Name: l.name}
		for _, r := range a.rows {
			if r.Kernel != l.kernel || r.Block != l.block || r.overhead <= 0 || r.path == nil {
				continue
			}
			x := float64(r.Irrelevant)
			if l.block == published.RelevantBlock {
				x = float64(r.Relevant)
			}
			s.X, s.Y = append(s.X, x), append(s.Y, r.overhead)
			if r.held && r.path.line != nil && r.prediction.Low > 0 {
				out.X, out.Y = append(out.X, x), append(out.Y, r.prediction.Value)
				out.Low, out.High = append(out.Low, r.prediction.Low), append(out.High, r.prediction.High)
			}
		}
		if len(s.X) > 0 {
			c.Series = append(c.Series, s)
		}
	}
	if len(out.X) > 0 {
		c.Series = append(c.Series, out)
	}
	return c
}
