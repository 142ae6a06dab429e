// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template"

	"github.com/textpoke/textpoke/results"
)

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
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = Said("", v)
	}
	return out
}
