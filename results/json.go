// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"fmt"
	"io"
)

// jsonWriter writes an array of objects, one object a line.
type jsonWriter struct {
	w       io.Writer
	columns []Column
	keys    [][]byte // the quoted column names with their colons
	rows    int
}

func newJSONWriter(w io.Writer, columns []Column) (*jsonWriter, error) {
	if err := checkColumns(columns); err != nil {
		return nil, err
	}
	j := &jsonWriter{w: w, columns: columns}
	for _, c := range columns {
		j.keys = append(j.keys, []byte(`"`+c.Name+`":`))
	}
	return j, j.put([]byte("["))
}

func (j *jsonWriter) Add(cells ...any) error {
	row, err := makeRow(j.columns, cells)
	if err != nil {
		return err
	}
	return j.AddRow(row)
}

func (j *jsonWriter) AddRow(row []Value) error {
	if err := checkRow(j.columns, row); err != nil {
		return err
	}
	// One write for a row, so that a reader never sees half an object.
	var b bytes.Buffer
	if j.rows > 0 {
		b.WriteByte(',')
	}
	b.WriteString("\n{")
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(j.keys[i])
		cell, err := v.MarshalJSON()
		if err != nil {
			return fmt.Errorf("%w: column %s: %w", ErrRow, j.columns[i].Name, err)
		}
		b.Write(cell)
	}
	b.WriteByte('}')
	j.rows++
	return j.put(b.Bytes())
}

func (j *jsonWriter) Close() error {
	if j.rows == 0 {
		return j.put([]byte("]\n"))
	}
	return j.put([]byte("\n]\n"))
}

func (j *jsonWriter) put(b []byte) error {
	if _, err := j.w.Write(b); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// WriteJSON writes the whole table as a JSON array of objects whose members are
// in the order of the columns; an empty cell is null.
func WriteJSON(w io.Writer, t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	j, err := newJSONWriter(w, t.Columns)
	if err != nil {
		return err
	}
	return writeAll(j, t)
}
