// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Spec declares an experiment: C is its Config, R one of its rows.
type Spec[C, R any] struct {
	// Form is the text of NAME.experiment: name, examples, flags, columns, charts and report.
	Form    string
	Columns results.Columns[R] // behind the form's
	// Cells are those of the form's columns that are no field and no method of a row.
	Cells map[string]func(R) any
	// Fields are those of a Config, besides the form's flags; nil where it has none.
	Fields func(*C) []*choice.Field
	// Check tells what the fields of a complete Config do not tell of themselves; it
	// may be nil.
	Check func(*C) error
	// Measure adds the rows to the study, and returns what the templates are executed with. When it
	// is cut short it returns what the rows show by then, beside the error.
	Measure func(context.Context, *Study[C, R]) (any, error)

	// Parsed is the form, where somebody has read it already; it may be nil.
	Parsed *form.Form

	hidden results.Columns[R]
}

// Files are the forms of all experiments and what they read besides, by their paths below this folder.
//
//go:embed report.md.tmpl missing.csv */*.experiment */*.csv batches/plans/*.plan
var Files embed.FS

// Text is one of these files.
func Text(path string) string {
	b, err := Files.ReadFile(path)
	if err != nil {
		panic(err) // a mistake of ours
	}
	return string(b)
}

// ParseForm reads an experiment's form; name is what errors call it.
func ParseForm(name string, src []byte) (*form.Form, error) { return form.Parse(name, src, layout) }

// validate tells what is wrong with a Config: which field, and what it wants.
func (s *Spec[C, R]) validate(c *C, fields []*choice.Field) error {
	if err := choice.Validate(fields); err != nil || s.Check == nil {
		return err
	}
	return s.Check(c)
}

// complete are the fields, of which those that have the zero value get their defaults.
func (s *Spec[C, R]) complete(c *C) ([]*choice.Field, error) {
	var own []*choice.Field
	if s.Fields != nil {
		own = s.Fields(c)
	}
	fields, err := flagged(c, s.form().Flags, own)
	if err != nil {
		return nil, err
	}
	return fields, choice.Complete(fields)
}

// run answers the question. When it is cut short, the answer is that of the finished rows, beside the error.
func (s *Spec[C, R]) run(ctx context.Context, c *C, fields []*choice.Field, lab Lab) (*Answer, error) {
	if err := s.validate(c, fields); err != nil {
		return nil, err
	}
	if lab.Log == nil {
		lab.Log = zap.NewNop()
	}
	study := s.Study(*c, lab)
	found, err := s.Measure(ctx, study)
	if found == nil {
		return nil, err
	}
	a, aerr := s.Answer(study, found)
	return a, cmp.Or(err, aerr)
}

// Study is one with no rows yet.
func (s *Spec[C, R]) Study(c C, lab Lab) *Study[C, R] {
	f := s.form()
	return &Study[C, R]{Form: f, Config: c, Lab: lab, columns: s.Columns, hidden: s.hidden, table: s.Columns.Table(f.Name)}
}

// Answer is the answer of a study, of which templates say what has been found.
func (s *Spec[C, R]) Answer(study *Study[C, R], found any) (*Answer, error) {
	f := s.form()
	if err := study.finish(); err != nil {
		return nil, err
	}
	var err error
	if study.figures, err = figures(f, study.Of); err != nil {
		return nil, err
	}
	a := &Answer{Table: study.table, No: study.No, Figures: study.figures}
	if a.No == nil {
		if a.No, err = broken(f, study.facts); err != nil {
			return nil, err
		}
	}
	predicted := study.Predictions
	if predicted == nil {
		predicted = study.figures
	}
	if a.Documents, err = draw(f, study, found); err != nil {
		return nil, err
	}
	line, err := f.Part("headline", found)
	if err != nil {
		return nil, err
	}
	report := &report{f, part(f, "question"), strings.Join(strings.Fields(line), " "), study.CutShort(), found}
	body, err := f.Part("body", found)
	if err != nil {
		return nil, err
	}
	a.Headline, a.Opening, a.Basis = report.Headline, opening(body), basis(a.Table, predicted)
	a.Documents = slices.Concat(a.Documents, []results.Document{report.document()}, study.documents)
	return a, nil
}

// draw are the pictures that the form declares: NAME.svg; those after the first have the end of a name, or without a
// dash all of it.
func draw[C, R any](f *form.Form, study *Study[C, R], report any) (out []results.Document, err error) {
	for i := range f.Charts {
		chart := &f.Charts[i]
		c, err := chart.Draw(study.Of(chart.Of), func(text *form.Text) (string, error) { return f.Fill(text, report) })
		if err != nil {
			return nil, err
		}
		if i > 0 && len(c.Series) == 0 {
			continue // of a second one with nothing in it there is no file
		}
		name := f.Name + chart.End
		if chart.End != "" && chart.End[0] != '-' {
			name = chart.End
		}
		out = append(out, results.Document{Name: name + ".svg", Write: c.WriteSVG})
	}
	return out, nil
}

// form is the experiment's. A mistake in one is ours.
func (s *Spec[C, R]) form() *form.Form {
	if s.Parsed != nil {
		return s.Parsed
	}
	f, err := ParseForm("form", []byte(s.Form))
	if err == nil {
		var columns results.Columns[R]
		columns, s.hidden, err = form.Bind(f.Columns, s.Cells)
		s.Parsed, s.Columns = f, append(columns, s.Columns...)
	}
	if err != nil {
		panic(fmt.Sprintf("experiments: %v", err))
	}
	return s.Parsed
}

// New is an experiment whose form, one of [Files], declares all but how its rows are measured.
func New[C, R any](form string, measure func(context.Context, *Study[C, R]) (any, error)) func() *Experiment {
	return (&Spec[C, R]{Form: Text(form), Measure: measure}).Experiment()
}

// Experiment makes the experiment for those who do not know its Config. Its form is parsed when it is first asked for.
func (s *Spec[C, R]) Experiment() func() *Experiment { return sync.OnceValue(s.experiment) }

func (s *Spec[C, R]) experiment() *Experiment {
	f := s.form()
	return &Experiment{
		Name: f.Name, Question: part(f, "question"), Short: f.Short, About: strings.TrimSpace(must(f, "about")),
		Examples: f.Examples,
		Table:    func() results.Table { return s.Columns.Table(f.Name) },
		New: func() *Request {
			c := new(C)
			fields, err := s.complete(c)
			if err != nil {
				panic(err) // a default of ours
			}
			return &Request{Fields: fields, Run: func(ctx context.Context, lab Lab) (*Answer, error) {
				return s.run(ctx, c, fields, lab)
			}}
		},
	}
}

// must is a part of a report that says the same whatever was found.
func must(f *form.Form, name string) string {
	s, err := f.Part(name, nil)
	if err != nil {
		panic(fmt.Sprintf("experiments: %v", err)) // a mistake of ours
	}
	return s
}

func part(f *form.Form, name string) string { return strings.Join(strings.Fields(must(f, name)), " ") }
