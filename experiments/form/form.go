// SPDX-License-Identifier: Apache-2.0

// Package form reads experiments that are data: one text file that says what is counted
// or run, which columns a row has, which charts are drawn, which published figures stand
// beside them, and what the report says. docs/experiments.md describes the form.
//
// Nothing here runs anything: experiments/grid does, and packages whose rows are computed
// in Go declare their columns, charts and reports in the same form.
package form

import (
	"fmt"
	"text/template"

	"github.com/textpoke/textpoke/internal/choice"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/results/plots"
)

// Form is an experiment as its file says it.
type Form struct {
	File     string // as errors call it
	Name     string
	Short    string            // what it is about, in a line
	Examples []string          // what follows "textpoke experiment "
	Grid     *Grid             // nil where rows are computed in Go
	Flags    []choice.Declared // of experiments that are computed in Go
	Columns  []Column
	Tables   []Declared // beside the report
	Charts   []Chart
	Figures  []Figure
	Must     []Must
	Prose    string // the template of the report
	Line     int    // of its first line

	all *template.Template
}

// Grid is what is counted or run: the cross product of the values of its axes, for each
// of its points.
type Grid struct {
	Mode   string // "count", or "run"
	Line   int
	Axes   []Axis
	Beside []Beside
	// Labels are the names of the points' columns, Points their values; without any
	// there is one point that says nothing.
	Labels []string
	Points []Point
}

// Axis is the values of an axis, as its flag would have them.
type Axis struct {
	Name, Values string
	Fixed        bool // no flag changes it
	Line         int
}

// Beside is each combination once more, with other values of some axes. Its columns are
// called NAME.COLUMN in expressions.
type Beside struct {
	Name string
	Axes []Axis
}

// Point is a line of a grid's points.
type Point struct {
	Line   int
	Values []string
}

// Column declares a column of the table.
type Column struct {
	results.Declared
	From *Expr // what its cells are; nil: the column of that name
	Late bool  // it looks at other rows: it is known when all are there
	Line int
}

// Declared is a table NAME.csv beside the report, whose rows are computed in Go.
type Declared struct {
	Name    string
	Hidden  bool // it is for charts, figures and templates alone, and no file
	Columns []Column
	Line    int
}

// Figure is a published figure, and what stands beside it in the rows that it is about.
type Figure struct {
	What      *Text  // a template of a row
	Of        string // the table beside the report that the rows are of; "" for the main one
	Published *Expr
	Ours      *Expr
	Where     *Expr // nil for all rows
	Exact     bool
	Source    *Text
	Low, High *Expr // the range of ours; nil for none
	Line      int
}

// Must is what has to hold of every row, or the answer is no.
type Must struct {
	Holds *Expr
	Says  *Text // what is wrong with a row of which it does not
}

// Chart declares a picture of the rows.
type Chart struct {
	End             string // of its file's name, "" or such as -front; without a dash the name itself
	Of              string // the table beside the report whose rows are drawn; "" for the main one
	Title, Subtitle *Text  // templates of what the report is made of
	X, Y            ChartAxis
	Where           *Expr  // rows that are drawn; nil for all
	Only            string // of these, those in which this column has the value Is; "" for all
	Is              *Text
	Sort            *Expr // rows with a lesser value come first; nil: as they are
	Layers          []Layer
	Alone           bool // no two series have a bar at the same place
	Line            int
}

// ChartAxis is an axis of a chart.
type ChartAxis struct {
	From  *Expr // nil: layers say
	Label *Text // nil for none
	Log   bool
}

// Layer is a kind of mark, and the columns that it shows.
type Layer struct {
	Mark             plots.Mark
	X, Y             *Expr // nil: the axis's
	Low, High, Label *Expr // nil for none
	By               *Expr // a series for each of its values
	Name             string
	Where            *Expr
	Format           string // of labels
}

// Axis is the axis of that name; nil if there is none.
func (g *Grid) Axis(name string) *Axis {
	for i := range g.Axes {
		if g.Axes[i].Name == name {
			return &g.Axes[i]
		}
	}
	return nil
}

// Bind makes columns of rows that are computed in Go. A column's cell is the field, or
// the method without parameters, whose name is that of the column but for underscores
// and case: rounds_saved is RoundsSaved. A path such as Modelled.Update says otherwise.
// Where a pointer on the way is nil, and where the text at the end is "", the cell is
// empty. Other cells are own's, by the names of their columns.
// Hidden columns stand apart.
func Bind[R any](declared []Column, own map[string]func(R) any) (shown, hidden results.Columns[R], err error) {
	cells := map[string]func(R) any{}
	for _, c := range declared {
		if c.Late {
			if !c.Hidden {
				shown = append(shown, results.Col[R]{Column: c.Column, Cell: func(R) any { return results.Empty }})
			}
			continue
		}
		cell := own[c.Name]
		if cell == nil {
			cell, err = source[R](c, cells)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		if c.If != "" {
			if cell, err = onlyIf(c, cell, cells); err != nil {
				return nil, nil, fmt.Errorf("column %s: %w", c.Name, err)
			}
		}
		cells[c.Name] = cell
		to := &shown
		if c.Hidden {
			to = &hidden
		}
		*to = append(*to, results.Col[R]{Column: c.Column, Cell: cell})
	}
	return shown, hidden, nil
}

// source is where a column's cells come from.
func source[R any](c Column, before map[string]func(R) any) (func(R) any, error) {
	if c.From == nil {
		cell, _, err := results.PathCell[R](c.Declared)
		return cell, err
	}
	names := c.From.Names()
	for _, name := range names {
		if before[name] == nil {
			return nil, fmt.Errorf("there is no column %s above it", name)
		}
	}
	return func(r R) any {
		row := Row{}
		for _, name := range names {
			v, err := results.ValueOf(before[name](r))
			if err != nil {
				return err // no cell: whoever writes the row says so
			}
			row[name] = v.Any()
		}
		v, err := c.From.Eval(row)
		if err != nil {
			return err
		}
		return Cell(v, c.Kind)
	}, nil
}

// Cell makes a cell of the value of an expression.
func Cell(v any, kind results.Kind) any {
	f, ok := v.(float64)
	switch {
	case v == nil:
		return results.Empty
	case ok && kind == results.Integer:
		return int64(f)
	case ok && kind == results.Text:
		return results.Plain(f)
	}
	return v
}

// onlyIf leaves a cell empty where the condition's column is, or the path's value is
// nil, false or 0.
func onlyIf[R any](c Column, cell func(R) any, before map[string]func(R) any) (func(R) any, error) {
	holds := func(r R) bool {
		v, err := results.ValueOf(before[c.If](r))
		return err == nil && !v.IsEmpty() && v != results.Bool(false)
	}
	if before[c.If] == nil {
		var err error
		if holds, err = results.Holds[R](c.If); err != nil {
			return nil, err
		}
	}
	return func(r R) any {
		if !holds(r) {
			return results.Empty
		}
		return cell(r)
	}, nil
}
