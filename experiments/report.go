// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/sheet"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/kernels/microbench"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

// layout is what all reports have: the question, the headline, what is missing, and
// how published figures are shown.
var layout = template.Must(template.New("report").Funcs(form.Funcs()).Funcs(template.FuncMap{
	"host":      func() string { return runtime.GOOS + ", " + runtime.GOARCH },
	"processor": func() string { return cmp.Or(microbench.Model(), "unknown") },
	"pair":      func(a, b any) string { return fmt.Sprint(a) + ", " + fmt.Sprint(b) },
	"size":      size, "span": Span, "modelled": Modelled, "lacks": Lacks,
}).Parse(Text("report.md.tmpl")))

// size is a number of bytes as people read it; "" for an empty cell.
func size(v any) string {
	n, err := strconv.ParseUint(form.Said("", v), 10, 64)
	if err != nil {
		return ""
	}
	return choice.Size(n)
}

// report is what the layout is filled with.
type report struct {
	*form.Form
	Question, Headline, CutShort string
	Found                        any
}

// gaps are what parts that are left out leave behind.
var gaps = regexp.MustCompile(`\n{3,}`)

func (r *report) document() results.Document {
	return results.Document{Name: "report.md", Write: func(w io.Writer) error {
		s, err := r.Part("report", r)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, strings.TrimSpace(gaps.ReplaceAllString(s, "\n\n"))+"\n")
		return err
	}}
}

// Comparison is a published figure and what came out here.
type Comparison struct {
	What            string
	Published, Ours float64
	Exact           bool // both are counts: they are the same or they are not
	Source          string
	Low, High       float64 // the range of ours, where it is modelled; both 0 where there is none
}

// Ranged tells whether ours has a range.
func (c Comparison) Ranged() bool { return c.Low != 0 || c.High != 0 }

// Inside tells whether the published figure lies in it.
func (c Comparison) Inside() bool { return c.Low <= c.Published && c.Published <= c.High }

// Missing is the mechanism that the model lacks where the figure lies outside; "" where
// none is known.
func (c Comparison) Missing() string { return missing[c.What] }

// Lack is a mechanism that a model lacks, and the figures that lie outside for want of it.
type Lack struct {
	Mechanism string
	Figures   []string
}

// Lacks are those of the figures that lie outside of their ranges, in their order.
func Lacks(all []Comparison) (out []Lack) {
	outside := spelling.Where(all, func(c Comparison) bool { return c.Ranged() && !c.Inside() })
	for _, m := range spelling.Distinct(outside, Comparison.Missing) {
		l := Lack{Mechanism: m}
		for _, c := range spelling.Where(outside, func(c Comparison) bool { return c.Missing() == m }) {
			l.Figures = append(l.Figures, c.What)
		}
		out = append(out, l)
	}
	return out
}

// Modelled is a time in nanoseconds as a headline says it: two digits, its range, and how
// much of it rests on quantities that are assumed.
func Modelled(s calibration.Spread) string {
	return fmt.Sprintf("%s (%s to %s, %.0f %% of it assumed)", results.About(s.Likely), results.About(s.Low),
		results.About(s.High), 100*s.Assumed)
}

// Error is how far ours is from the published figure: a difference of counts,
// otherwise a share of the published figure.
func (c Comparison) Error() string {
	d := c.Ours - c.Published
	if c.Exact {
		return strconv.FormatFloat(d, 'f', -1, 64)
	}
	if c.Published == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*d/math.Abs(c.Published))
}

// Row is the comparison as the report shows it.
func (c Comparison) Row() string {
	ours := figure(c.Ours)
	if c.Ranged() {
		ours = fmt.Sprintf("%s (%s to %s)", ours, figure(c.Low), figure(c.High))
	}
	return form.Line(c.What, figure(c.Published), ours, c.Error(), c.Source)
}

// figure prints a figure with as many digits as are worth reading.
func figure(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// Span prints the interval of an estimate with so many digits behind the point.
func Span(digits int, e fit.Estimate) string {
	return fmt.Sprintf("%.*f to %.*f", digits, e.Low, digits, e.High)
}

// figures holds the published figures that a form declares against the rows that each is about:
// those of one table row by row.
func figures(f *form.Form, of func(table string) form.Rows) (out []Comparison, err error) {
	for _, table := range spelling.Distinct(f.Figures, func(fig form.Figure) string { return fig.Of }) {
		for _, row := range of(table) {
			for _, fig := range spelling.Where(f.Figures, func(fig form.Figure) bool { return fig.Of == table }) {
				c, about, err := compare(f, &fig, row)
				if err != nil {
					return nil, err
				}
				if about {
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

// compare holds one figure against a row; false where it is not about it.
func compare(f *form.Form, fig *form.Figure, row form.Row) (c Comparison, about bool, err error) {
	if about, err = fig.Where.Holds(row); err != nil || !about {
		return c, false, err
	}
	c.Exact = fig.Exact
	for _, n := range []struct {
		from *form.Expr
		to   *float64
	}{{fig.Published, &c.Published}, {fig.Ours, &c.Ours}, {fig.Low, &c.Low}, {fig.High, &c.High}} {
		if n.from == nil {
			continue
		}
		v, err := n.from.Eval(row)
		if err != nil {
			return c, false, err
		}
		*n.to, _ = v.(float64)
	}
	if c.What, err = f.Fill(fig.What, row); err != nil {
		return c, false, err
	}
	c.Source, err = f.Fill(fig.Source, row)
	return c, true, err
}

// broken says of the first row that is not as the form says it must be what is wrong.
func broken(f *form.Form, rows form.Rows) (no, err error) {
	for _, m := range f.Must {
		for _, row := range rows {
			ok, err := m.Holds.Holds(row)
			if err != nil {
				return nil, err
			}
			if !ok {
				says, err := f.Fill(m.Says, row)
				return errors.New(says), err
			}
		}
	}
	return nil, nil
}

// opening is what a report says below its headline, up to its first table or heading.
func opening(body string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(gaps.ReplaceAllString(body, "\n\n")), "\n") {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "![") {
			break
		}
		lines = append(lines, line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// basis says in a sentence what modelled times rest on: the machines that rows name, how
// much of what is said of them is assumed, and how far published figures are off. It is
// "" where no row names a machine.
func basis(t results.Table, predicted []Comparison) string {
	var names []string
	at := slices.IndexFunc(t.Columns, func(c results.Column) bool { return c.Name == "calibration" })
	for _, row := range t.Rows {
		if at >= 0 && !row[at].IsEmpty() && !slices.Contains(names, row[at].String()) {
			names = append(names, row[at].String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	for i, name := range names {
		if c, err := calibration.Open(name); err == nil {
			names[i] = fmt.Sprintf("%s (%d of %d quantities assumed)", name, Assumed(c), len(c.Entries))
		}
	}
	line := "Times are modelled on " + strings.Join(names, ", ")
	if low, high, ok := off(predicted); ok {
		line += fmt.Sprintf("; published cases are off by %+.0f to %+.0f %%", low, high)
	}
	return line + "."
}

// Assumed is how many quantities of a calibration are assumed.
func Assumed(c *calibration.Calibration) int {
	return spelling.Count(c.Entries, func(e calibration.Entry) bool { return e.Basis == calibration.Assumed })
}

// off is how far times are from the published ones, at both ends, in per cent: of comparisons that are no counts.
func off(pairs []Comparison) (low, high float64, ok bool) {
	var all []float64
	for _, c := range pairs {
		if !c.Exact && c.Published != 0 {
			all = append(all, 100*(c.Ours-c.Published)/math.Abs(c.Published))
		}
	}
	if len(all) == 0 {
		return 0, 0, false
	}
	return slices.Min(all), slices.Max(all), true
}

// missing is by figure the mechanism that models are known to lack. trial.Pairs holds it against what comes out, both
// ways: a figure that lies inside may not stand there.
var missing = func() map[string]string {
	out := map[string]string{}
	for _, l := range sheet.Must[struct {
		Mechanism string `col:"mechanism"`
		Figure    string `col:"figure,key"`
	}]("missing.csv", Text("missing.csv")) {
		out[l.Figure] = l.Mechanism
	}
	return out
}()

// Listed are the figures of which a mechanism is known to be missing.
func Listed() []string { return slices.Collect(maps.Keys(missing)) }
