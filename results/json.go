// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"fmt"
	"io"
)

// json begins an array of objects, one object a line, whose members are in the order of the columns; an empty cell is
// null.
func (r *RowWriter) json(w io.Writer) error {
	put := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		return nil
	}
	between, end := "\n{", "]\n"
	r.row = func(row []Value) error {
		// One write for a row, so that a reader never sees half an object.
		b := bytes.NewBufferString(between)
		for i, v := range row {
			if i > 0 {
				b.WriteByte(',')
			}
			cell, err := v.MarshalJSON()
			if err != nil {
				return fmt.Errorf("%w: column %s: %w", ErrRow, r.columns[i].Name, err)
			}
			fmt.Fprintf(b, "%q:%s", r.columns[i].Name, cell)
		}
		b.WriteByte('}')
		between, end = ",\n{", "\n]\n"
		return put(b.Bytes())
	}
	r.end = func() error { return put([]byte(end)) }
	return put([]byte("["))
}
