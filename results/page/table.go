// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// rowsShown and linesShown are how much of a table or a text is shown. A page is to be
// read; the files are beside it.
const rowsShown, linesShown = 40, 60

// Table is the first rows of a table.
type Table struct {
	Name   string
	Same   []Cell // columns whose cells are all the same, of two rows or more
	Head   []results.Column
	Rows   [][]Cell
	Of     int // rows in the file
	Absent int // columns that are empty in all rows
}

// Cell is a cell of a table, or a column's name and what all its cells hold.
type Cell struct {
	Name, Text string
	Number     bool
}

// Documented tells whether it is known what columns hold.
func (t Table) Documented() bool {
	return slices.ContainsFunc(t.Head, func(c results.Column) bool { return c.Doc != "" })
}

// readTable reads a table's CSV. It leaves out columns that are empty in all rows, and says once
// what all rows share.
func readTable(name string, columns []results.Column, text []byte) (Table, error) {
	t := Table{Name: name}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err == nil && len(rows) == 0 {
		err = errors.New("it has no header")
	}
	if err != nil {
		return t, err
	}
	docs := map[string]string{}
	for _, c := range columns {
		docs[c.Name] = c.Doc
	}
	t.Of = len(rows) - 1
	t.Rows = make([][]Cell, min(t.Of, rowsShown))
	for i, name := range rows[0] {
		same, empty := t.Of > 1, true
		for _, row := range rows[1:] {
			same = same && row[i] == rows[1][i]
			empty = empty && row[i] == ""
		}
		switch {
		case empty && t.Of > 0:
			t.Absent++
		case same:
			t.Same = append(t.Same, cell(name, rows[1][i]))
		default:
			t.Head = append(t.Head, results.Column{Name: name, Doc: docs[name]})
			for j := range t.Rows {
				t.Rows[j] = append(t.Rows[j], cell(name, rows[1+j][i]))
			}
		}
	}
	return t, nil
}

// cell is a cell as people read it: times and sizes with a unit.
func cell(name, text string) Cell {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Cell{Name: name, Text: text}
	}
	if strings.Contains(text, ".") { // six digits, as in tables for people
		if v, err = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64); err == nil {
			text = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	switch (results.Column{Name: name}).Unit() {
	case "ns":
		text = results.Nanoseconds(v)
	case "B":
		text = results.Bytes(v)
	}
	return Cell{Name: name, Text: text, Number: true}
}

// cutText is the first lines of a text.
func cutText(name, body string) Text {
	lines := strings.SplitAfter(strings.TrimSuffix(body, "\n"), "\n")
	t := Text{Name: name, Lines: len(lines), Cut: len(lines) > linesShown}
	t.Body = strings.Join(lines[:min(len(lines), linesShown)], "")
	return t
}
