// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"cmp"
	"context"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
)

// Spec declares an experiment: C is its Config, R one of its rows.
type Spec[C, R any] struct {
	Name     string
	Short    string
	Examples []string
	// Prose is the text of report.md.tmpl. It defines the templates "question",
	// "about" and "headline"; what stands outside of them is the report below the
	// headline.
	Prose   string
	Columns results.Columns[R]
	// Fields are those of a Config; nil where it has none.
	Fields func(*C) []*Field
	// Check tells what the fields of a complete Config do not tell of themselves; it
	// may be nil.
	Check func(*C) error
	// Measure adds the rows to the study, and says what they show. When it is cut
	// short it returns what the rows show by then, beside the error.
	Measure func(context.Context, *Study[C, R]) (*Findings, error)
}

// Run answers the question. Fields that have the zero value stand for their defaults.
// When it is cut short, the answer is that of the finished rows, beside the error.
func (s *Spec[C, R]) Run(ctx context.Context, c C, lab Lab) (*Answer, error) {
	fields, err := s.complete(&c)
	if err != nil {
		return nil, err
	}
	return s.run(ctx, &c, fields, lab)
}

// Validate tells what is wrong with a Config: which field, and what it wants.
func (s *Spec[C, R]) Validate(c C) error {
	fields, err := s.complete(&c)
	if err != nil {
		return err
	}
	return s.validate(&c, fields)
}

func (s *Spec[C, R]) validate(c *C, fields []*Field) error {
	if err := choice.Validate(fields); err != nil || s.Check == nil {
		return err
	}
	return s.Check(c)
}

// complete are the fields, of which those that have the zero value get their defaults.
func (s *Spec[C, R]) complete(c *C) ([]*Field, error) {
	if s.Fields == nil {
		return nil, nil
	}
	fields := s.Fields(c)
	return fields, choice.Complete(fields)
}

func (s *Spec[C, R]) run(ctx context.Context, c *C, fields []*Field, lab Lab) (*Answer, error) {
	if err := s.validate(c, fields); err != nil {
		return nil, err
	}
	if lab.Log == nil {
		lab.Log = zap.NewNop()
	}
	study := &Study[C, R]{Config: *c, Lab: lab, columns: s.Columns, table: s.Columns.Table(s.Name)}
	found, err := s.Measure(ctx, study)
	if found == nil {
		return nil, err
	}
	a, aerr := s.Answer(study, found)
	return a, cmp.Or(err, aerr)
}

// Answer is the answer of what a study has found.
func (s *Spec[C, R]) Answer(study *Study[C, R], found *Findings) (*Answer, error) {
	a := &Answer{Table: study.table, No: found.No}
	for _, p := range found.Pictures {
		a.Documents = append(a.Documents, p.Documents(s.Name)...)
	}
	p := parseProse(s.Name, s.Prose)
	report, err := p.report(study.CutShort(), found.Report)
	if err != nil {
		return nil, err
	}
	body, err := p.part("body", found.Report)
	if err != nil {
		return nil, err
	}
	a.Headline, a.Opening, a.Basis = report.Headline, opening(body), basis(a.Table, found.Report)
	a.Documents = append(append(a.Documents, report.document()), found.Documents...)
	return a, nil
}

// Experiment is the experiment for those who do not know its Config.
func (s *Spec[C, R]) Experiment() *Experiment {
	p := parseProse(s.Name, s.Prose)
	return &Experiment{
		Name: s.Name, Question: p.Question, Short: s.Short, About: p.About, Examples: s.Examples,
		Table: func() results.Table { return s.Columns.Table(s.Name) },
		New: func() *Request {
			c := new(C)
			fields, err := s.complete(c)
			if err != nil {
				panic(err) // a default of ours
			}
			return &Request{Fields: fields, Run: func(ctx context.Context, lab Lab) (*Answer, error) {
				return s.run(ctx, c,
					fields, lab)
			}}
		},
	}
}
