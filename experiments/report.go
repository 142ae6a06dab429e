// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/results/plots"
)

//go:embed report.md.tmpl
var layoutText string

// layout is what all reports have: the question, the headline, what is missing, and
// how published figures are shown.
var layout = template.Must(template.New("report").Funcs(template.FuncMap{
	"head": head, "row": row, "table": markdown, "join": strings.Join,
	"host":      func() string { return runtime.GOOS + ", " + runtime.GOARCH },
	"thousands": Thousands, "size": Size, "pair": couple, "tenth": Tenth, "span": Span, "short": Short,
	"four": Four, "us": func(ns float64) string { return Four(ns / 1e3) }, "seconds": Seconds,
	"percent": Percent, "lacks": Lacks, "duration": Duration, "fixed": Fixed, "p": P,
}).Parse(layoutText))

// prose is what an experiment's report.md.tmpl says.
type prose struct {
	Name, Question, About string
	text                  *template.Template
}

// parseProse reads a report.md.tmpl. A mistake in one is ours.
func parseProse(name, text string) *prose {
	t := template.Must(template.Must(layout.Clone()).New("body").Parse(text))
	p := &prose{Name: name, text: t}
	p.Question = strings.Join(strings.Fields(p.must("question")), " ")
	p.About = strings.TrimSpace(p.must("about"))
	return p
}

func (p *prose) must(part string) string {
	s, err := p.part(part, nil)
	if err != nil {
		panic(fmt.Sprintf("experiments: %v", err)) // a mistake of ours
	}
	return s
}

// part is one of the templates, filled with data.
func (p *prose) part(name string, data any) (string, error) {
	var b strings.Builder
	if err := p.text.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("report of %s: %w", p.Name, err)
	}
	return b.String(), nil
}

// report is what the layout is filled with.
type report struct {
	*prose
	Headline, CutShort string
	Found              any
}

func (p *prose) report(cutShort string, found any) (*report, error) {
	line, err := p.part("headline", found)
	return &report{prose: p, Headline: strings.Join(strings.Fields(line), " "), CutShort: cutShort, Found: found}, err
}

// gaps are what parts that are left out leave behind.
var gaps = regexp.MustCompile(`\n{3,}`)

func (r *report) document() results.Document {
	return results.Document{Name: "report.md", Write: func(w io.Writer) error {
		s, err := r.part("report", r)
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
	return fmt.Sprintf("%s (%s to %s)", Duration(s.Likely), Duration(s.Low), Duration(s.High))
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
	return row(c.What, figure(c.Published), c.here(), c.Error(), c.Source)
}

// figure prints a figure with as many digits as are worth reading.
func figure(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// Table is a small table whose columns depend on the rows.
type Table struct {
	Title   string // above it; "" where the template has one
	Columns []string
	Rows    [][]string
}

// Pivot makes a table with a line for each key of rows and, behind the key, a column
// for each name, in the order in which they come.
func Pivot[R any](rows []R, keys []string, key func(R) []string, name, cell func(R) string) (t Table) {
	t.Columns = slices.Clone(keys)
	line := map[string]int{}
	for _, r := range rows {
		column := name(r)
		if !slices.Contains(t.Columns[len(keys):], column) {
			t.Columns = append(t.Columns, column)
		}
	}
	for _, r := range rows {
		k := key(r)
		id := strings.Join(k, "\x00")
		i, ok := line[id]
		if !ok {
			i, line[id] = len(t.Rows), len(t.Rows)
			t.Rows = append(t.Rows, append(slices.Clone(k), make([]string, len(t.Columns)-len(keys))...))
		}
		t.Rows[i][len(keys)+slices.Index(t.Columns[len(keys):], name(r))] = cell(r)
	}
	return t
}

// row is one line of a table in Markdown.
func row(cells ...any) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.ReplaceAll(fmt.Sprint(c), "|", `\|`)
	}
	return "| " + strings.Join(out, " | ") + " |"
}

// head is the header of a table in Markdown.
func head(names ...any) string { return row(names...) + "\n|" + strings.Repeat("---|", len(names)) }

// markdown is a whole table.
func markdown(t Table) string {
	var b bytes.Buffer
	anys := func(s []string) (out []any) {
		for _, c := range s {
			out = append(out, c)
		}
		return out
	}
	if t.Title != "" {
		fmt.Fprintf(&b, "### %s\n\n", t.Title)
	}
	fmt.Fprintln(&b, head(anys(t.Columns)...))
	for _, r := range t.Rows {
		fmt.Fprintln(&b, row(anys(r)...))
	}
	return b.String()
}

// Thousands prints a number with commas: 1,234.5.
func Thousands(v any) string {
	switch v := v.(type) {
	case int:
		return plots.Thousands(float64(v))
	case int64:
		return plots.Thousands(float64(v))
	case uint64:
		return plots.Thousands(float64(v))
	case float64:
		return plots.Thousands(v)
	}
	return fmt.Sprint(v)
}

// Percent prints a share: 12.5 %.
func Percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 4, 64) + " %" }

// Duration prints nanoseconds as people read them: 456 us, 47 ms, 1.20 s.
func Duration(ns float64) string {
	switch us := ns / 1000; {
	case us >= 1e6:
		return strconv.FormatFloat(us/1e6, 'f', 2, 64) + " s"
	case us >= 1e4:
		return strconv.FormatFloat(us/1e3, 'f', 0, 64) + " ms"
	default:
		return strconv.FormatFloat(us, 'f', 0, 64) + " us"
	}
}

// Seconds prints a time in seconds as people read it: 12.3 ms, 4.56 s, 2.5 minutes.
func Seconds(s float64) string {
	switch {
	case s >= 120:
		return fmt.Sprintf("%.3g minutes", s/60)
	case s >= 0.1:
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.3g ms", 1e3*s)
}

// Four prints a number with four significant digits.
func Four(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// Short prints a number with the digits that are worth reading: three, or all of the
// whole ones.
func Short(v float64) string {
	if v >= 1000 {
		return plots.Thousands(math.Round(v))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Span prints the interval of an estimate with so many digits behind the point.
func Span(digits int, e fit.Estimate) string {
	return fmt.Sprintf("%.*f to %.*f", digits, e.Low, digits, e.High)
}

// Tenth prints a number with one digit behind the point, where it has any.
func Tenth(v float64) string { return strconv.FormatFloat(math.Round(10*v)/10, 'f', -1, 64) }

// couple is two figures in one cell.
func couple(a, b any) string { return fmt.Sprint(a) + ", " + fmt.Sprint(b) }

// Fixed prints a number with so many digits behind the point.
func Fixed(digits int, v float64) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// P prints a p-value.
func P(p float64) string {
	if p < 0.0001 {
		return "below 0.0001"
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}
