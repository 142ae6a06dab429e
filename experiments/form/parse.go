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

// MaxFile is the most bytes that a file may have, maxLine the most of a line above its
// report.
const (
	MaxFile = 256 << 10
	maxLine = 1000
)

// reportBegins is the line between the declarations and the report.
const reportBegins = "---"

// The keys at the beginning of a line, in the order in which docs have them.
var keys = []string{"name", "short", "example", "grid", "beside", "points", "flags", "columns", "must", "chart", "figure"}

// block is a key with its value, and the indented lines below it.
type block struct {
	key, value string
	line       int
	items      []item
}

type item struct {
	text string
	line int
}

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
func (f *Form) blocks(src []byte) (out []block, err error) {
	if len(src) > MaxFile {
		return nil, f.wrong(1, "%d bytes: want %d at most", len(src), MaxFile)
	}
	line := 0
	for len(src) > 0 {
		var text []byte
		text, src, _ = bytes.Cut(src, []byte("\n"))
		line++
		s := strings.TrimRight(string(text), " \t\r")
		if s == reportBegins {
			f.Prose, f.Line = string(src), line+1
			if !utf8.Valid(src) {
				return nil, f.wrong(line+1, "the report is not UTF-8")
			}
			return out, nil
		}
		if out, err = f.add(out, s, line); err != nil {
			return nil, err
		}
	}
	return nil, f.wrong(max(line, 1), "no report: want a line %s and the report's template below it", reportBegins)
}

// add takes a line.
func (f *Form) add(out []block, s string, line int) ([]block, error) {
	trimmed := strings.TrimSpace(s)
	switch {
	case len(s) > maxLine:
		return nil, f.wrong(line, "%d bytes in a line: want %d at most", len(s), maxLine)
	case !utf8.ValidString(s):
		return nil, f.wrong(line, "not UTF-8")
	case trimmed == "" || trimmed[0] == '#':
		return out, nil
	case s != strings.TrimLeft(s, " \t"):
		if len(out) == 0 {
			return nil, f.wrong(line, "%q is indented, and nothing is above it", trimmed)
		}
		b := &out[len(out)-1]
		b.items = append(b.items, item{trimmed, line})
		return out, nil
	}
	key, value, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains(keys, key) {
		return nil, f.wrong(line, "%q: %v", key, spelling.NotOneOf(key, keys))
	}
	return append(out, block{key: key, value: strings.TrimSpace(value), line: line}), nil
}

// take reads a block.
func (f *Form) take(b block) error {
	switch b.key {
	case "name":
		if f.Name != "" {
			return f.wrong(b.line, "a second name")
		}
		if b.value == "" || len(b.value) > 60 || strings.Trim(b.value, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return f.wrong(b.line, "name %q: want small letters, digits and -, 60 at most", b.value)
		}
		f.Name = b.value
	case "short":
		f.Short = b.value
	case "example":
		f.Examples = append(f.Examples, b.value)
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
	if len(b.items) > 0 {
		return f.wrong(b.items[0].line, "%s has one value, and nothing below it", b.key)
	}
	return nil
}

// grid reads what is counted or run.
func (f *Form) grid(b block) (err error) {
	if f.Grid != nil {
		return f.wrong(b.line, "a second grid")
	}
	if b.value != "count" && b.value != "run" {
		return f.wrong(b.line, "grid %q: want count or run", b.value)
	}
	f.Grid = &Grid{Mode: b.value, Line: b.line}
	f.Grid.Axes, err = f.axes(b)
	return err
}

// axes reads lines such as "buffer: 128,256", which a flag changes, and
// "protocol = breakpoint", which none does.
func (f *Form) axes(b block) (out []Axis, err error) {
	for _, it := range b.items {
		at := strings.IndexAny(it.text, ":=")
		if at < 0 {
			return nil, f.wrong(it.line, "%q: want an axis, : or =, and its values", it.text)
		}
		a := Axis{Name: strings.TrimSpace(it.text[:at]), Values: strings.TrimSpace(it.text[at+1:]), Fixed: it.text[at] == '=',
			Line: it.line}
		if slices.ContainsFunc(out, func(other Axis) bool { return other.Name == a.Name }) {
			return nil, f.wrong(it.line, "a second %s", a.Name)
		}
		out = append(out, a)
	}
	return out, nil
}

func (f *Form) beside(b block) error {
	if f.Grid == nil {
		return f.wrong(b.line, "beside: no grid is above it")
	}
	if !identifier(b.value) {
		return f.wrong(b.line, "beside %q: want a name of letters", b.value)
	}
	axes, err := f.axes(b)
	f.Grid.Beside = append(f.Grid.Beside, Beside{b.value, axes})
	return err
}

func identifier(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

// points reads lines of comma-separated values below the names of axes and labels.
func (f *Form) points(b block) error {
	if f.Grid == nil {
		return f.wrong(b.line, "points: no grid is above it")
	}
	for _, it := range b.items {
		r := csv.NewReader(strings.NewReader(it.text))
		r.TrimLeadingSpace = true
		values, err := r.Read()
		if err != nil {
			if bad, ok := errors.AsType[*csv.ParseError](err); ok {
				err = bad.Err
			}
			return f.wrong(it.line, "%v", err)
		}
		switch {
		case f.Grid.Labels == nil:
			f.Grid.Labels = values
		case len(values) != len(f.Grid.Labels):
			return f.wrong(it.line, "%d values: want %d, one for each name", len(values), len(f.Grid.Labels))
		default:
			f.Grid.Points = append(f.Grid.Points, Point{it.line, values})
		}
	}
	if len(f.Grid.Points) == 0 {
		return f.wrong(b.line, "points: want a line of names, and lines of values below it")
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
func (f *Form) text(it item) *Text {
	if it.text == "" {
		return nil
	}
	return &Text{text: it.text, line: it.line, name: fmt.Sprintf("text of line %d", it.line)}
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
