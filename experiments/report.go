// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"text/template"

	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
)

//go:embed report.md.tmpl
var layoutText string

// layout is what all reports have: the question, the headline, what is missing, and
// how published figures are shown.
var layout = template.Must(template.New("report").Funcs(form.Funcs()).Funcs(template.FuncMap{
	"host": func() string { return runtime.GOOS + ", " + runtime.GOARCH },
	"pair": func(a, b any) string { return fmt.Sprint(a) + ", " + fmt.Sprint(b) },
	"size": choice.Size, "span": Span, "modelled": Modelled, "lacks": Lacks,
}).Parse(layoutText))

// report is what the layout is filled with.
type report struct {
	*form.Form
	Question, Headline, CutShort string
	Found                        any
}

func newReport(f *form.Form, cutShort string, found any) (*report, error) {
	line, err := f.Part("headline", found)
	return &report{f, part(f, "question"), strings.Join(strings.Fields(line), " "), cutShort, found}, err
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
	outside := Outside(all)
	for _, m := range Distinct(outside, Comparison.Missing) {
		l := Lack{Mechanism: m}
		for _, c := range Where(outside, func(c Comparison) bool { return c.Missing() == m }) {
			l.Figures = append(l.Figures, c.What)
		}
		out = append(out, l)
	}
	return out
}

// here is ours with its range.
func (c Comparison) here() string {
	if !c.Ranged() {
		return figure(c.Ours)
	}
	return fmt.Sprintf("%s (%s to %s)", figure(c.Ours), figure(c.Low), figure(c.High))
}

// Ranged is a time in nanoseconds with its range, as people read it: likely (low to high).
func Ranged(s calibration.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", results.Duration(s.Likely), results.Duration(s.Low), results.Duration(s.High))
}

// Modelled is a time in nanoseconds as a headline says it: two digits, its range, and how
// much of it rests on quantities that are assumed.
func Modelled(s calibration.Spread) string {
	return fmt.Sprintf("%s (%s to %s, %.2g %% of it assumed)", results.About(s.Likely), results.About(s.Low),
		results.About(s.High), 100*s.Assumed)
}

// Outside are those that lie outside of their ranges.
func Outside(all []Comparison) []Comparison {
	return Where(all, func(c Comparison) bool { return c.Ranged() && !c.Inside() })
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
	return form.Line(c.What, figure(c.Published), c.here(), c.Error(), c.Source)
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
