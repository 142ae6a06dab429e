// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/csv"
	"fmt"
	"io"
)

// CSVWriter writes rows as CSV, the header first. Each row is complete in the
// underlying writer when Add returns.
type CSVWriter struct {
	w       io.Writer
	csv     *csv.Writer
	columns []Column
	record  []string
}

// NewCSVWriter checks the columns and writes the header.
func NewCSVWriter(w io.Writer, columns []Column) (*CSVWriter, error) {
	if err := checkColumns(columns); err != nil {
		return nil, err
	}
	c := &CSVWriter{w: w, csv: csv.NewWriter(w), columns: columns, record: make([]string, len(columns))}
	for i, column := range columns {
		c.record[i] = column.Name
	}
	return c, c.flush()
}

// Add writes one row, one argument a column, as [Table.Add] does.
func (c *CSVWriter) Add(cells ...any) error {
	row, err := makeRow(c.columns, cells)
	if err != nil {
		return err
	}
	return c.AddRow(row)
}

// AddRow writes one row of cells.
func (c *CSVWriter) AddRow(row []Value) error {
	if err := checkRow(c.columns, row); err != nil {
		return err
	}
	for i, v := range row {
		c.record[i] = v.String()
	}
	return c.flush()
}

// Close does nothing: a CSV text has no end mark, and all rows are written.
func (c *CSVWriter) Close() error { return nil }

func (c *CSVWriter) flush() error {
	if len(c.record) == 1 && c.record[0] == "" {
		// A blank line is no row to readers of CSV; a quoted nothing is.
		if _, err := io.WriteString(c.w, "\"\"\n"); err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
		return nil
	}
	err := c.csv.Write(c.record)
	if err == nil {
		c.csv.Flush()
		err = c.csv.Error()
	}
	if err != nil {
		return fmt.Errorf("write CSV: %w", err)
	}
	return nil
}

// WriteCSV writes the whole table as CSV, the header first.
func WriteCSV(w io.Writer, t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	c, err := NewCSVWriter(w, t.Columns)
	if err != nil {
		return err
	}
	return writeAll(c, t)
}
