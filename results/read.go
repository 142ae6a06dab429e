// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// ReadCSV reads what [WriteCSV] wrote of a table with these columns. A text that is empty
// comes back as [Empty].
func ReadCSV(r io.Reader, name string, columns []Column) (Table, error) {
	t := Table{Name: name, Columns: columns}
	records, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return t, fmt.Errorf("read %s: %w", name, err)
	}
	var header []string
	for _, c := range columns {
		header = append(header, c.Name)
	}
	if len(records) == 0 || !slices.Equal(records[0], header) {
		return t, fmt.Errorf("read %s: it has other columns", name)
	}
	for i, record := range records[1:] {
		row := make([]Value, len(columns))
		for k, text := range record {
			if row[k], err = columns[k].Kind.parse(text); err != nil {
				return t, fmt.Errorf("read %s: row %d: column %s: %w", name, i+1, columns[k].Name, err)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// parse reads a cell.
func (k Kind) parse(text string) (Value, error) {
	if text == "" {
		return Empty, nil
	}
	if k == Text {
		return String(text), nil
	}
	if k == Boolean {
		b, err := strconv.ParseBool(text)
		return Bool(b), err
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && Int(i).String() == text {
		return Int(i), nil
	}
	u, err := strconv.ParseUint(text, 10, 64)
	if err == nil || k == Integer {
		return Uint(u), err
	}
	f, err := strconv.ParseFloat(text, 64)
	if err == nil {
		err = Float(f).check()
	}
	return Float(f), err
}
