package experiments

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/template"
)

//go:embed report.md.tmpl
var reportText string

var reportTemplate = template.Must(template.New("report").Funcs(template.FuncMap{"rule": rule, "row": row}).Parse(reportText))

// Report is an answer for people, in Markdown. Parts that are empty are left out.
type Report struct {
	Name, Question string
	Headline       string   // the answer in one line
	CutShort       string   // what is missing; "" when nothing is
	Answer         []string // more of it, a paragraph or a list each
	Sheets         []Sheet
	Measured       []string // what was counted or timed here, and how
	Modelled       []string // what stands for something else, and what is left out
	Beside         []Beside
	Notes          []string // what to know about the published figures
}

// NewReport begins the report of an experiment.
func NewReport(name, question string) *Report { return &Report{Name: name, Question: question} }

// Sheet is a small table.
type Sheet struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Beside is a published figure and what came out here.
type Beside struct {
	What            string
	Published, Ours float64
	Exact           bool // both are counts: they are the same or they are not
	Source          string
}

// Error is how far ours is from the published figure: a difference of counts,
// otherwise a share of the published figure.
func (b Beside) Error() string {
	d := b.Ours - b.Published
	if b.Exact {
		return strconv.FormatFloat(d, 'f', -1, 64)
	}
	if b.Published == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*d/math.Abs(b.Published))
}

// Ours and Published as people read them.
func (b Beside) cells() []string {
	return []string{b.What, number(b.Published), number(b.Ours), b.Error(), b.Source}
}

// number prints a figure with as many digits as are worth reading.
func number(f float64) string {
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', 4, 64)
}

// P is a p-value as people read it.
func P(p float64) string {
	if p < 0.0001 {
		return "below 0.0001"
	}
	return strconv.FormatFloat(p, 'f', 4, 64)
}

// BesideSheet is the published figures as a sheet.
func (r *Report) BesideSheet() Sheet {
	s := Sheet{Columns: []string{"figure", "published", "here", "error", "source"}}
	for _, b := range r.Beside {
		s.Rows = append(s.Rows, b.cells())
	}
	return s
}

// row is one line of a table in Markdown.
func row(cells []string) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(out, " | ") + " |"
}

// rule is the line below its header.
func rule(cells []string) string { return "|" + strings.Repeat("---|", len(cells)) }

// Write writes the report.
func (r *Report) Write(w io.Writer) error { return reportTemplate.Execute(w, r) }
