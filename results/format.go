// SPDX-License-Identifier: Apache-2.0

package results

import (
	"io"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Format is how a table looks on standard output. It implements the interface
// of command-line flag packages (Set, String, Type).
type Format string

// The formats. The zero Format is FormatTable.
const (
	FormatTable Format = "table"
	FormatCSV   Format = "csv"
	FormatJSON  Format = "json"
	FormatBench Format = "benchfmt"
)

// Formats names the valid formats, the default first.
func Formats() []string {
	return []string{string(FormatTable), string(FormatCSV), string(FormatJSON), string(FormatBench)}
}

// String is the format's name.
func (f Format) String() string {
	if f == "" {
		return string(FormatTable)
	}
	return string(f)
}

// Set reads the format from a flag's value, as Formats spells it.
func (f *Format) Set(s string) error {
	if !slices.Contains(Formats(), s) {
		return spelling.NotOneOf(s, Formats())
	}
	*f = Format(s)
	return nil
}

// Type names the flag's kind of value in help texts.
func (*Format) Type() string { return "format" }

// RowWriter takes rows as they finish. Close must be called once, also for a
// run that was cut short: it ends the JSON array, or prints the table. It does
// not close the writer below.
type RowWriter struct {
	columns []Column
	row     func([]Value) error
	end     func() error
}

// Add writes one row.
func (r *RowWriter) Add(row []Value) error {
	if err := checkRow(r.columns, row); err != nil {
		return err
	}
	return r.row(row)
}

// Close writes what only the end of the rows allows.
func (r *RowWriter) Close() error { return r.end() }

// NewWriter starts a stream of rows in the given format, with this look where it is a table for people. CSV and JSON
// rows are written when they are added; a table needs all rows to know its widths, benchmarks to know what they have
// in common, and both appear when the writer is closed.
func (l Look) NewWriter(w io.Writer, f Format, columns []Column) (*RowWriter, error) {
	if err := checkColumns(columns); err != nil {
		return nil, err
	}
	kept := Table{Name: l.Name, Columns: columns}
	r := &RowWriter{columns: columns, row: func(row []Value) error {
		kept.Rows = append(kept.Rows, slices.Clone(row))
		return nil
	}}
	switch f.String() {
	case string(FormatTable):
		r.end = func() error { return l.writeTable(w, kept) }
	case string(FormatBench):
		r.end = func() error { return writeBench(w, kept) }
	case string(FormatCSV):
		return r, r.csv(w)
	case string(FormatJSON):
		return r, r.json(w)
	default:
		return nil, f.Set(string(f))
	}
	return r, nil
}

// Write writes the whole table in the given format.
func Write(w io.Writer, f Format, t Table) error { return Look{Name: t.Name}.Write(w, f, t) }

// Write writes the whole table in the given format, with this look where it is for people. Nothing of a table that is
// not well formed is written.
func (l Look) Write(w io.Writer, f Format, t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	r, err := l.NewWriter(w, f, t.Columns)
	if err != nil {
		return err
	}
	for _, row := range t.Rows {
		if err := r.row(row); err != nil {
			return err
		}
	}
	return r.Close()
}
