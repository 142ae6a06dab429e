// SPDX-License-Identifier: Apache-2.0

package results

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
)

var (
	// ErrRow means that a row does not fit its columns. It is a mistake of the
	// program, not of its input.
	ErrRow = errors.New("results: row does not fit its columns")
	// ErrColumns means that the columns themselves are wrong: none, two of one
	// name, or a name that is not lower case with underscores.
	ErrColumns = errors.New("results: bad columns")
)

// Kind is what the cells of a column are, as JSON Schema calls it.
type Kind string

// The kinds. The zero Kind is Text.
const (
	Text    Kind = ""
	Integer Kind = "integer"
	Number  Kind = "number" // integers, too
	Boolean Kind = "boolean"
)

// holds tells whether a cell is of this kind, or empty.
func (k Kind) holds(v Value) bool {
	switch v.v.(type) {
	case nil:
		return true
	case string:
		return k == Text
	case int64, uint64:
		return k == Integer || k == Number
	case float64:
		return k == Number
	}
	return k == Boolean
}

// Column describes one column of a table.
type Column struct {
	// Name is what scripts rely on: lower case, digits and underscores, ending in
	// the unit (_ns, _bytes, _per_s); counts have no suffix.
	Name string `json:"name"`
	// Doc is one sentence about what the column holds.
	Doc string `json:"doc"`
	// Kind is what its cells are, where they are not empty.
	Kind Kind `json:"kind,omitempty"`
	// Detail columns are left out of the table for people unless they are asked for;
	// files and streams have them all.
	Detail bool `json:"-"`
	// Axis columns say what was asked for, also where they are numbers.
	Axis bool `json:"-"`
	// Lead columns stand in the table for people even where all rows have the same.
	Lead bool `json:"-"`
}

// holds refuses what cannot stand in the column.
func (c Column) holds(v Value) error {
	err := v.check()
	if err == nil && !c.Kind.holds(v) {
		err = fmt.Errorf("%q is no %s", v, cmp.Or(c.Kind, "string"))
	}
	if err != nil {
		return fmt.Errorf("%w: column %s: %w", ErrRow, c.Name, err)
	}
	return nil
}

// Table is columns and rows of cells. Name is the name of the file that it
// becomes, without the ".csv".
type Table struct {
	Name    string
	Columns []Column
	Rows    [][]Value
}

// Add appends a row, one argument a column; [ValueOf] says what may be given.
// On an error the table is unchanged.
func (t *Table) Add(cells ...any) error {
	row, err := makeRow(t.Columns, cells)
	if err != nil {
		return err
	}
	t.Rows = append(t.Rows, row)
	return nil
}

// Check tells whether columns and rows are well formed. All writers do it first.
func (t Table) Check() error {
	if err := checkColumns(t.Columns); err != nil {
		return err
	}
	for i, row := range t.Rows {
		if err := checkRow(t.Columns, row); err != nil {
			return fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return nil
}

var columnName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func checkColumns(columns []Column) error {
	if len(columns) == 0 {
		return fmt.Errorf("%w: there are none", ErrColumns)
	}
	seen := make(map[string]bool, len(columns))
	for _, c := range columns {
		if !columnName.MatchString(c.Name) {
			return fmt.Errorf("%w: name %q is not lower case with underscores", ErrColumns, c.Name)
		}
		if seen[c.Name] {
			return fmt.Errorf("%w: %q stands there twice", ErrColumns, c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

func checkRow(columns []Column, row []Value) error {
	if len(row) != len(columns) {
		return fmt.Errorf("%w: %d cells for %d columns", ErrRow, len(row), len(columns))
	}
	for i, v := range row {
		if err := columns[i].holds(v); err != nil {
			return err
		}
	}
	return nil
}

// value makes a cell of the column.
func (c Column) value(x any) (Value, error) {
	v, err := ValueOf(x)
	if err != nil {
		return v, fmt.Errorf("%w: column %s: %w", ErrRow, c.Name, err)
	}
	return v, c.holds(v)
}

func makeRow(columns []Column, cells []any) ([]Value, error) {
	if len(cells) != len(columns) {
		return nil, fmt.Errorf("%w: %d cells for %d columns", ErrRow, len(cells), len(columns))
	}
	row := make([]Value, len(cells))
	for i, x := range cells {
		var err error
		if row[i], err = columns[i].value(x); err != nil {
			return nil, err
		}
	}
	return row, nil
}
