// SPDX-License-Identifier: Apache-2.0

// Package experiments says what an experiment is: a question about live patching
// together with all it takes to answer it again. Each experiment is a package
// below this one; catalogue lists them all.
//
// An experiment is a file, NAME.experiment, that says examples, flags, columns, charts,
// published figures and the report (package form). Where counting or running
// combinations is all, package grid does the rest. Where rows are computed in another
// way, the package has a Config, which the flags of the file fill, and a [Spec] with the function
// that measures. Flags and JSON are read by the fields.
//
// CONTRIBUTING.md says step by step how one is added.
package experiments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/experiments/form"
	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// ErrLimits is beside an answer whose rows are all there, though the limits that the
// Config sets left some of them open.
var ErrLimits = errors.New("limits left rows open")

// Experiment is one question, whatever its Config is.
type Experiment struct {
	Name     string // as the command line spells it
	Question string
	Short    string   // what it is about, in a line
	About    string   // how the question is answered, for people who ask for help
	Examples []string // what follows "textpoke experiment "
	Table    func() results.Table
	New      func() *Request // with the defaults of all fields
}

// Request is an experiment with a Config of its own, which its fields change.
type Request struct {
	Fields []*choice.Field
	Run    func(context.Context, Lab) (*Answer, error)
}

// Field is the field of that name; nil if there is none.
func (r *Request) Field(name string) *choice.Field {
	return spelling.First(r.Fields, func(f *choice.Field) bool { return f.Name == name })
}

// Lab is what an experiment is run with. The zero value will do.
type Lab struct {
	Seed     uint64                   // of every random choice
	Revision string                   // of the program, for the rows that name it
	Log      *zap.Logger              // nil: nothing is logged
	Add      func(cells ...any) error // takes each row when it is finished; may be nil
	Progress func(line string)        // shows how far a long row has got; may be nil
	Kept     Kept                     // by experiments that were run before with the same; may be nil
}

// Kept is what an experiment has found out that another one may ask for, by what was asked.
type Kept map[any]any

// Answer is what comes out. Of an experiment that was cut short it is what the
// finished rows say.
type Answer struct {
	Headline  string        // the answer in one line
	Opening   string        // what it rests on: paragraphs in Markdown
	Basis     string        // what modelled times rest on, a sentence; "" where there are none
	Table     results.Table // the rows
	Figures   []Comparison  // the published ones, with what came out
	Documents []results.Document
	// No is set when the answer is that something is not as it must be.
	No error
}

// Beside writes rows to NAME.csv, with the columns that the form declares for it, unless it hides them. Charts,
// figures and templates of the study can ask about them, too.
func Beside[C, R, T any](s *Study[C, R], name string, rows []T) error {
	declared := s.Form.Named(name)
	if declared == nil {
		return fmt.Errorf("%s declares no table %s", s.Form.File, name)
	}
	shown, hidden, err := form.Bind[T](declared.Columns, nil)
	if err != nil {
		return err
	}
	t, err := shown.Fill(name, rows)
	if err != nil {
		return err
	}
	if s.beside == nil {
		s.beside = map[string]form.Rows{}
	}
	facts := form.RowsOf(t)
	s.beside[name] = facts
	for i, row := range rows {
		if err := hidden.AddTo(facts[i], row); err != nil {
			return err
		}
	}
	s.later = append(s.later, func() error { return complete(declared.Columns, facts, &t, s.seenFrom(facts)) })
	if declared.Hidden {
		return nil
	}
	s.Document(results.Document{Name: name + ".csv", Write: func(w io.Writer) error { return results.WriteCSV(w, t) }})
	return nil
}

// Study is an experiment under way.
type Study[C, R any] struct {
	Form   *form.Form
	Config C
	Lab
	Asked int // how many rows there will be
	// No is set when the answer is that something is not as it must be.
	No error
	// Predictions are published times with those of a model; nil where the figures have them all.
	Predictions []Comparison
	Rows        []R // that are finished

	columns, hidden results.Columns[R]
	table           results.Table
	facts           form.Rows // the rows with the table's hidden columns
	beside          map[string]form.Rows
	later           []func() error     // completes them
	documents       []results.Document // of them
	figures         []Comparison
}

// Add takes a finished row.
func (s *Study[C, R]) Add(row R) error {
	cells := s.columns.Cells(row)
	if err := s.table.Add(cells...); err != nil {
		return err
	}
	facts, whole := any(row).(form.Row)
	if !whole {
		facts = form.RowOf(s.table.Columns, s.table.Rows[len(s.table.Rows)-1])
		if err := s.hidden.AddTo(facts, row); err != nil {
			return err
		}
	}
	s.Rows, s.facts = append(s.Rows, row), append(s.facts, facts)
	if s.Progress != nil && s.Asked > 1 {
		s.Progress(fmt.Sprintf("%d of %d rows", len(s.Rows), s.Asked))
	}
	if s.Lab.Add == nil || s.waits() {
		return nil
	}
	return s.Lab.Add(cells...)
}

// waits tells whether rows show what all of them say together, so that none is handed over before.
func (s *Study[C, R]) waits() bool {
	return slices.ContainsFunc(s.Form.Columns, func(c form.Column) bool { return c.Late && !c.Hidden })
}

// finish adds the columns that look at other rows, and hands over the rows that have waited for that.
func (s *Study[C, R]) finish() error {
	for _, table := range s.later {
		if err := table(); err != nil {
			return err
		}
	}
	err := complete(s.Form.Columns, s.facts, &s.table, s.seenFrom(s.facts))
	if err != nil || s.Lab.Add == nil || !s.waits() {
		return err
	}
	for _, row := range s.table.Rows {
		cells := make([]any, len(row))
		for i, v := range row {
			cells[i] = v
		}
		if err := s.Lab.Add(cells...); err != nil {
			return err
		}
	}
	return nil
}

// seenFrom are the tables that the rows of one can look at: "" is that one, "rows" the main one.
func (s *Study[C, R]) seenFrom(own form.Rows) func(string) form.Rows {
	return func(table string) form.Rows {
		if table == "" {
			return own
		}
		return s.Of(table)
	}
}

// complete adds the columns that look at other rows, to a table and to what is known of its rows.
func complete(columns []form.Column, facts form.Rows, t *results.Table, of func(string) form.Rows) error {
	if err := form.Finish(columns, facts, of); err != nil {
		return err
	}
	at := -1
	for _, c := range columns {
		if !c.Hidden {
			at++
		}
		for i := range facts {
			if !c.Late || c.Hidden {
				break
			}
			v, err := results.ValueOf(form.Cell(facts[i][c.Name], c.Kind))
			if err != nil {
				return err
			}
			t.Rows[i][at] = v
		}
	}
	return nil
}

// Document adds a file beside the report.
func (s *Study[C, R]) Document(d results.Document) { s.documents = append(s.documents, d) }

// Table is the rows, as templates ask about them.
func (s *Study[C, R]) Table() form.Rows { return s.facts }

// Of is the rows of a table beside the report; "" and "rows" are the main one.
func (s *Study[C, R]) Of(table string) form.Rows {
	if table == "" || table == "rows" {
		return s.facts
	}
	return s.beside[table]
}

// Comparisons are the published figures that the form declares, with what came out.
func (s *Study[C, R]) Comparisons() []Comparison { return s.figures }

// CutShort says what is missing; "" when nothing is.
func (s *Study[C, R]) CutShort() string {
	if len(s.Rows) >= s.Asked {
		return ""
	}
	return fmt.Sprintf("%d of %d rows were finished.", len(s.Rows), s.Asked)
}

// Each makes a row of each point, until an error or the end of ctx.
func Each[C, R, P any](ctx context.Context, s *Study[C, R], points []P, measure func(P) (R, error)) error {
	s.Asked = len(points)
	for _, p := range points {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, err := measure(p)
		if err != nil {
			return err
		}
		if err := s.Add(row); err != nil {
			return err
		}
	}
	return nil
}

// Find is the first row that a condition holds of; nil if there is none.
func Find[R any](rows []R, holds func(*R) bool) *R {
	for i := range rows {
		if holds(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}
