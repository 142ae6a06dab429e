package experiments

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

type Legacy struct {
	Name     string
	Question string
	Short    string
	About    string
	Examples []string
	Table    func() results.Table
	Flags    func(*pflag.FlagSet) LegacyRun
}

type LegacyRun func(context.Context, *Lab) (*Answer, error)

func (e Legacy) Experiment() *Experiment {
	return &Experiment{Name: e.Name, Question: e.Question, Short: e.Short, About: e.About, Examples: e.Examples, Table: e.Table, New: func() *Request {
		fs := pflag.NewFlagSet(e.Name, pflag.ContinueOnError)
		run := e.Flags(fs)
		r := &Request{Run: func(ctx context.Context, lab Lab) (*Answer, error) {
			if lab.Log == nil {
				lab.Log = zap.NewNop()
			}
			add, t := lab.Add, e.Table()
			lab.Add = func(cells ...any) error {
				if err := t.Add(cells...); err != nil || add == nil {
					return err
				}
				return add(cells...)
			}
			a, err := run(ctx, &lab)
			if a != nil {
				a.Table = t
			}
			return a, err
		}}
		fs.VisitAll(func(f *pflag.Flag) {
			if old, ok := f.Value.(flag); ok {
				r.Fields = append(r.Fields, old.Field)
				return
			}
			r.Fields = append(r.Fields, &Field{Name: f.Name, Doc: f.Usage, Type: f.Value.Type(), Default: f.DefValue, NamesFile: func(string) bool {
				return f.Name == "published" || f.Name == "published-runs" || f.Name == "kallsyms" || f.Name == "records"
			},
				Get: func() any { return f.Value.String() },
				set: func(s string) error {
					if s == "" {
						return errors.New("want a name")
					}
					return f.Value.Set(s)
				},
				text: f.Value.String, unset: func() bool { return f.Value.String() == "" || f.Value.String() == "[]" }, check: func() error { return nil }})
		})
		return r
	}}
}

func Register(f *pflag.FlagSet, field *Field) {
	if err := field.complete(); err != nil {
		panic(err)
	}
	Bind(f, []*Field{field})
}

type Calibrated = Machine
type Beside = Comparison

const legacyText = `{{define "sheet"}}{{row .Columns}}
{{rule .Columns}}
{{range .Rows}}{{row .}}
{{end}}{{end -}}
# Experiment {{.Name}}

{{.Question}}

## Answer
{{- if .CutShort}}

**Cut short:** {{.CutShort}}
{{- end}}
{{- if .Headline}}

**{{.Headline}}**
{{- end}}
{{- range .Answer}}

{{.}}
{{- end}}
{{range .Sheets}}
### {{.Title}}

{{template "sheet" .}}
{{- end}}
{{- if .Measured}}
## What was measured
{{range .Measured}}
- {{.}}
{{- end}}
{{end}}
{{- if .Modelled}}
## What was modelled
{{range .Modelled}}
- {{.}}
{{- end}}
{{end}}
{{- if .Beside}}
## Published figures beside it

{{template "sheet" .BesideSheet}}
{{- range .Notes}}
{{.}}
{{end}}
{{- end -}}
`

var legacyTemplate = template.Must(template.New("legacy").Funcs(template.FuncMap{
	"rule": func(c []string) string { return legacyRule(c) }, "row": func(c []string) string { return legacyRow(c) }}).Parse(legacyText))

func legacyRow(c []string) string {
	var a []any
	for _, x := range c {
		a = append(a, x)
	}
	return row(a...)
}

func legacyRule(c []string) string { return "|" + fmt.Sprint(repeat("---|", len(c))) }
func repeat(s string, n int) (o string) {
	for range n {
		o += s
	}
	return
}

type Report struct {
	Name, Question string
	Headline       string
	CutShort       string
	Answer         []string
	Sheets         []Sheet
	Measured       []string
	Modelled       []string
	Beside         []Beside
	Notes          []string
}

func NewReport(name, question string) *Report { return &Report{Name: name, Question: question} }

type Sheet struct {
	Title   string
	Columns []string
	Rows    [][]string
}

func (r *Report) BesideSheet() Sheet {
	s := Sheet{Columns: []string{"figure", "published", "here", "error", "source"}}
	for _, b := range r.Beside {
		s.Rows = append(s.Rows, []string{b.What, figure(b.Published), figure(b.Ours), b.Error(), b.Source})
	}
	return s
}

func (r *Report) Write(w io.Writer) error { return legacyTemplate.Execute(w, r) }

func NewAnswer(name string, r *Report, p plots.Picture, more ...results.Document) *Answer {
	docs := append(Drawn(name, p), results.Document{Name: "report.md", Write: r.Write})
	return &Answer{Headline: r.Headline, Documents: append(docs, more...)}
}

func Drawn(name string, p plots.Picture) []results.Document {
	return Picture{Picture: p}.Documents(name)
}

func Names[T any](f *pflag.FlagSet, to *[]T, name, usage string, names []string, parse func(string) (T, error)) {
	k := Named(names, parse, func(T) string { return "" })
	k.Check = func(T) error { return nil }
	field := List(to, name, strings.Join(names, ","), usage, k)
	field.text = func() string { return field.Default }
	Register(f, field)
}
