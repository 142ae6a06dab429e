// SPDX-License-Identifier: Apache-2.0

package form

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"unicode/utf8"

	"github.com/textpoke/textpoke/internal/inputs"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// MaxFile is the most bytes that a file may have.
const MaxFile = 256 << 10

// reportBegins is the line between the declarations and the report.
var reportBegins = regexp.MustCompile(`(?m)^---[ \t\r]*$`)

// The keys at the beginning of a line, in the order in which docs have them.
var keys = []string{"name", "short", "example", "grid", "beside", "points", "flags", "columns", "must", "chart", "figure"}

// Parse reads a file; name is what errors call it, base has what its templates may use
// besides. Errors are *[inputs.ParseError].
func Parse(name string, src []byte, base *template.Template) (*Form, error) {
	f := &Form{File: name}
	blocks, err := f.blocks(src)
	if err != nil {
		return nil, err
	}
	for _, b := range blocks {
		if err := f.take(b); err != nil {
			return nil, err
		}
	}
	if f.Name == "" {
		return nil, f.wrong(1, "no name: the file needs a line such as %q", "name: my-experiment")
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, f.compile(base)
}

func (f *Form) wrong(line int, format string, args ...any) error {
	return &inputs.ParseError{File: f.File, Line: line, Reason: fmt.Sprintf(format, args...)}
}

// blocks cuts the text into its blocks and its report.
func (f *Form) blocks(src []byte) ([]inputs.Block, error) {
	if len(src) > MaxFile {
		return nil, f.wrong(1, "%d bytes: want %d at most", len(src), MaxFile)
	}
	at := reportBegins.FindIndex(src)
	if at == nil {
		at = []int{len(src), len(src)}
	}
	out, err := inputs.Blocks(f.File, string(src[:at[0]]), keys)
	if err != nil {
		return nil, err
	}
	f.Line = 2 + bytes.Count(src[:at[0]], []byte("\n"))
	if at[0] == len(src) {
		return nil, f.wrong(max(f.Line-2, 1), "no report: want a line --- and the report's template below it")
	}
	prose := bytes.TrimPrefix(src[at[1]:], []byte("\n"))
	if f.Prose = string(prose); !utf8.Valid(prose) {
		return nil, f.wrong(f.Line, "the report is not UTF-8")
	}
	return out, nil
}

// take reads a block.
func (f *Form) take(b inputs.Block) error {
	switch b.Key {
	case "name":
		if f.Name != "" {
			return f.wrong(b.Line, "a second name")
		}
		if b.Value == "" || len(b.Value) > 60 || strings.Trim(b.Value, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return f.wrong(b.Line, "name %q: want small letters, digits and -, 60 at most", b.Value)
		}
		f.Name = b.Value
	case "short":
		f.Short = b.Value
	case "example":
		f.Examples = append(f.Examples, b.Value)
	case "grid":
		return f.grid(b)
	case "beside":
		return f.beside(b)
	case "points":
		return f.points(b)
	case "flags":
		return f.flags(b)
	case "columns":
		return f.columns(b)
	case "chart":
		return f.chart(b)
	case "figure":
		return f.figure(b)
	case "must":
		if err := f.must(b); err != nil {
			return err
		}
	}
	if len(b.Items) > 0 {
		return f.wrong(b.Items[0].Line, "%s has one value, and nothing below it", b.Key)
	}
	return nil
}

// grid reads what is counted or run.
func (f *Form) grid(b inputs.Block) (err error) {
	if f.Grid != nil {
		return f.wrong(b.Line, "a second grid")
	}
	if b.Value != "count" && b.Value != "run" {
		return f.wrong(b.Line, "grid %q: want count or run", b.Value)
	}
	f.Grid = &Grid{Mode: b.Value, Line: b.Line}
	f.Grid.Axes, err = f.axes(b)
	return err
}

// axes reads lines such as "buffer: 128,256", which a flag changes, and
// "protocol = breakpoint", which none does.
func (f *Form) axes(b inputs.Block) (out []Axis, err error) {
	for _, it := range b.Items {
		at := strings.IndexAny(it.Text, ":=")
		if at < 0 {
			return nil, f.wrong(it.Line, "%q: want an axis, : or =, and its values", it.Text)
		}
		a := Axis{Name: strings.TrimSpace(it.Text[:at]), Values: strings.TrimSpace(it.Text[at+1:]), Fixed: it.Text[at] == '=',
			Line: it.Line}
		if slices.ContainsFunc(out, func(other Axis) bool { return other.Name == a.Name }) {
			return nil, f.wrong(it.Line, "a second %s", a.Name)
		}
		out = append(out, a)
	}
	return out, nil
}

func (f *Form) beside(b inputs.Block) error {
	if f.Grid == nil {
		return f.wrong(b.Line, "beside: no grid is above it")
	}
	if !identifier(b.Value) {
		return f.wrong(b.Line, "beside %q: want a name of letters", b.Value)
	}
	axes, err := f.axes(b)
	f.Grid.Beside = append(f.Grid.Beside, Beside{b.Value, axes})
	return err
}

func identifier(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// points reads lines of comma-separated values below the names of axes and labels.
func (f *Form) points(b inputs.Block) error {
	if f.Grid == nil {
		return f.wrong(b.Line, "points: no grid is above it")
	}
	for _, it := range b.Items {
		r := csv.NewReader(strings.NewReader(it.Text))
		r.TrimLeadingSpace = true
		values, err := r.Read()
		if err != nil {
			if bad, ok := errors.AsType[*csv.ParseError](err); ok {
				err = bad.Err
			}
			return f.wrong(it.Line, "%v", err)
		}
		switch {
		case f.Grid.Labels == nil:
			f.Grid.Labels = values
		case len(values) != len(f.Grid.Labels):
			return f.wrong(it.Line, "%d values: want %d, one for each name", len(values), len(f.Grid.Labels))
		default:
			f.Grid.Points = append(f.Grid.Points, Point{it.Line, values})
		}
	}
	if len(f.Grid.Points) == 0 {
		return f.wrong(b.Line, "points: want a line of names, and lines of values below it")
	}
	return nil
}

// check tells what is missing or does not fit together.
func (f *Form) check() error {
	if len(f.Columns) == 0 && f.Grid != nil {
		return f.wrong(1, "no columns: the file needs a block that begins with %q", "columns:")
	}
	if f.Grid != nil && len(f.Flags) > 0 {
		return f.wrong(f.Flags[0].Line, "flags: those of a grid are its axes with a colon")
	}
	seen := map[string]bool{}
	for _, c := range f.Columns {
		if seen[c.Name] {
			return f.wrong(c.Line, "a second column %s", c.Name)
		}
		seen[c.Name] = true
	}
	for _, c := range f.Columns {
		if c.If != "" && f.Grid == nil && !seen[c.If] && !results.IsPath(c.If) {
			return f.wrong(c.Line, "column %s: if %s: there is no such column", c.Name, c.If)
		}
	}
	return nil
}

// Text is a template of a line.
type Text struct {
	text string
	line int
	name string // among the form's templates
}

// text is an item's template; nil where there is none.
func (f *Form) text(it inputs.Item) *Text {
	if it.Text == "" {
		return nil
	}
	return &Text{text: it.Text, line: it.Line, name: fmt.Sprintf("text of line %d", it.Line)}
}

// texts are all templates of lines.
func (f *Form) texts() (out []*Text) {
	for _, c := range f.Charts {
		out = append(out, c.Title, c.Subtitle, c.X.Label, c.Y.Label, c.Is)
	}
	for _, m := range f.Must {
		out = append(out, m.Says)
	}
	for _, fig := range f.Figures {
		out = append(out, fig.What, fig.Source)
	}
	return out
}

// The parts that every report's template defines.
var parts = []string{"question", "about", "headline"}

// compile reads the report and the templates of lines. base has the functions that they
// call, and the templates that all reports have.
func (f *Form) compile(base *template.Template) error {
	all := template.Must(base.Clone())
	if _, err := all.New("body").Parse(f.Prose); err != nil {
		return f.templateError(f.Line, err)
	}
	for _, part := range parts {
		if all.Lookup(part) == nil || !strings.Contains(f.Prose, `define "`+part+`"`) {
			return f.wrong(f.Line, "the report defines no %s: it needs {{define %q}}...{{end}}", part, part)
		}
	}
	for _, t := range f.texts() {
		if t == nil {
			continue
		}
		if _, err := all.New(t.name).Parse(t.text); err != nil {
			return f.templateError(t.line, err)
		}
	}
	f.all = all
	return nil
}

// templateWrong is how text/template says where it found what.
var templateWrong = regexp.MustCompile(`^template: [^:]*:(\d+)(?::\d+)?: (?:executing .*? at )?(.*)$`)

// templateError is a mistake in a template that begins in a line of the file.
func (f *Form) templateError(line int, err error) error {
	if m := templateWrong.FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " ")); m != nil {
		n, _ := strconv.Atoi(m[1])
		return f.wrong(line+n-1, "%s", m[2])
	}
	return f.wrong(line, "%v", err)
}

// Part is one of the report's templates, filled with data.
func (f *Form) Part(name string, data any) (string, error) {
	var b strings.Builder
	if err := f.all.ExecuteTemplate(&b, name, data); err != nil {
		return "", f.templateError(f.Line, err)
	}
	return b.String(), nil
}

// Fill fills a line's template; "" for nil.
func (f *Form) Fill(t *Text, data any) (string, error) {
	if t == nil {
		return "", nil
	}
	var b strings.Builder
	if err := f.all.ExecuteTemplate(&b, t.name, data); err != nil {
		return "", f.templateError(t.line, err)
	}
	return strings.Join(strings.Fields(b.String()), " "), nil
}

// Funcs are the functions that templates can call: lines of tables in Markdown, and the
// formats of numbers by their names.
func Funcs() template.FuncMap {
	all := template.FuncMap{"head": headOf, "row": rowOf, "table": Table.String, "join": strings.Join,
		"fixed": results.Fixed}
	for name := range results.Say {
		all[name] = func(v any) string { return Said(name, v) }
	}
	return all
}

func headOf(names ...any) string { return Head(printed(names)...) }
func rowOf(cells ...any) string  { return Line(printed(cells)...) }

func printed(values []any) []string {
	return spelling.Each(values, func(v any) string { return Said("", v) })
}
