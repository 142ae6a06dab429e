// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"io"
	"strings"
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

// Formats lists the valid formats, the default first.
func Formats() []Format { return []Format{FormatTable, FormatCSV, FormatJSON, FormatBench} }

// ParseFormat reads the name of a format, as Formats spells it.
func ParseFormat(s string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if s == string(f) {
			return f, nil
		}
		names = append(names, string(f))
	}
	return "", fmt.Errorf("format %q is none of %s", s, strings.Join(names, ", "))
}

// String is the format's name.
func (f Format) String() string {
	if f == "" {
		return string(FormatTable)
	}
	return string(f)
}

// Set reads the format from a flag's value.
func (f *Format) Set(s string) error {
	p, err := ParseFormat(s)
	if err == nil {
		*f = p
	}
	return err
}

// Type names the flag's kind of value in help texts.
func (*Format) Type() string { return "format" }

// Write writes the whole table in the given format.
func Write(w io.Writer, f Format, t Table) error {
	switch f.String() {
	case string(FormatTable):
		return WriteTable(w, t)
	case string(FormatCSV):
		return WriteCSV(w, t)
	case string(FormatJSON):
		return WriteJSON(w, t)
	case string(FormatBench):
		return WriteBench(w, t)
	}
	_, err := ParseFormat(string(f))
	return err
}

// RowWriter takes rows as they finish. Close must be called once, also for a
// run that was cut short: it ends the JSON array, or prints the table. It does
// not close what is written to.
type RowWriter interface {
	// Add writes one row, one argument a column, as [Table.Add] does.
	Add(cells ...any) error
	// AddRow writes one row of cells.
	AddRow(row []Value) error
	Close() error
}

// NewWriter starts a stream of rows in the given format. CSV and JSON rows are
// written when they are added; a table needs all rows to know its widths, benchmarks to
// know what they have in common, and both appear when the writer is closed.
func NewWriter(w io.Writer, f Format, columns []Column) (RowWriter, error) {
	return Look{}.NewWriter(w, f, columns)
}

// NewWriter starts a stream of rows, with this look where it is a table for people.
func (l Look) NewWriter(w io.Writer, f Format, columns []Column) (RowWriter, error) {
	switch f.String() {
	case string(FormatTable):
		if err := checkColumns(columns); err != nil {
			return nil, err
		}
		return &tableWriter{w: w, look: l, table: Table{Columns: columns}}, nil
	case string(FormatCSV):
		return NewCSVWriter(w, columns)
	case string(FormatJSON):
		return newJSONWriter(w, columns)
	case string(FormatBench):
		if err := checkColumns(columns); err != nil {
			return nil, err
		}
		return &benchWriter{w, Table{Name: l.Name, Columns: columns}}, nil
	}
	_, err := ParseFormat(string(f))
	return nil, err
}

// writeAll sends a table through a stream.
func writeAll(w RowWriter, t Table) error {
	for _, row := range t.Rows {
		if err := w.AddRow(row); err != nil {
			return err
		}
	}
	return w.Close()
}

// tableWriter keeps the rows until it is closed.
type tableWriter struct {
	w     io.Writer
	look  Look
	table Table
}

func (t *tableWriter) Add(cells ...any) error { return t.table.Add(cells...) }

func (t *tableWriter) AddRow(row []Value) error {
	if err := checkRow(t.table.Columns, row); err != nil {
		return err
	}
	t.table.Rows = append(t.table.Rows, append([]Value(nil), row...))
	return nil
}

func (t *tableWriter) Close() error { return t.look.WriteTable(t.w, t.table) }
