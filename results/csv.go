// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/csv"
	"fmt"
	"io"
)

// csv writes the header. Each row is complete in the underlying writer when it was added.
func (r *RowWriter) csv(w io.Writer) error {
	out, record := csv.NewWriter(w), make([]string, len(r.columns))
	flush := func() (err error) {
		if len(record) == 1 && record[0] == "" {
			// A blank line is no row to readers of CSV; a quoted nothing is.
			_, err = io.WriteString(w, "\"\"\n")
		} else if err = out.Write(record); err == nil {
			out.Flush()
			err = out.Error()
		}
		if err != nil {
			return fmt.Errorf("write CSV: %w", err)
		}
		return nil
	}
	r.row = func(row []Value) error {
		for i, v := range row {
			record[i] = v.String()
		}
		return flush()
	}
	r.end = func() error { return nil }
	for i, column := range r.columns {
		record[i] = column.Name
	}
	return flush()
}

// WriteCSV writes the whole table as CSV, the header first.
func WriteCSV(w io.Writer, t Table) error { return Write(w, FormatCSV, t) }
