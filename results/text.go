// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// MaxWidth is the width, in terminal columns, above which a single row is
// printed downwards instead of across.
const MaxWidth = 120

// tableDigits is the number of significant digits of a float in a table.
const tableDigits = 6

// WriteTable writes the table for people; the package comment says what is
// left out and why.
func WriteTable(w io.Writer, t Table) error {
	if err := t.Check(); err != nil {
		return err
	}
	if _, err := io.WriteString(w, render(t)); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func render(t Table) string {
	if len(t.Rows) == 0 {
		return "no rows\n"
	}
	constant, varying := split(t)
	if len(varying) == 0 {
		// A single row, or all rows the same: show them as rows, or their number would
		// be lost.
		constant, varying = nil, constant
	}
	if len(varying) == 0 {
		return "no values\n"
	}
	across := grid(t, varying)
	if len(t.Rows) == 1 && width(across) > MaxWidth {
		return lines(t, varying)
	}
	if len(constant) == 0 {
		return across
	}
	return paragraph(t, constant) + "\n" + across
}

// paragraph prints what all rows have in common, "name: value" after
// "name: value", broken at MaxWidth.
func paragraph(t Table, columns []int) string {
	var b strings.Builder
	used := 0
	for _, c := range columns {
		s := cell(t.Rows[0][c])
		if s == "" {
			continue
		}
		s = t.Columns[c].Name + ": " + s
		n := text.StringWidthWithoutEscSequences(s)
		switch {
		case used == 0:
		case used+3+n > MaxWidth:
			b.WriteString("\n")
			used = 0
		default:
			b.WriteString("   ")
			used += 3
		}
		b.WriteString(s)
		used += n
	}
	return b.String() + "\n"
}

// split sorts the columns into those that one line can say for all rows and
// those that need a column. Columns without any value are in neither.
func split(t Table) (constant, varying []int) {
	for c := range t.Columns {
		first, same := t.Rows[0][c], true
		for _, row := range t.Rows {
			same = same && row[c] == first
		}
		switch {
		case t.Columns[c].Detail && len(t.Rows) > 1:
		case same && first.IsEmpty():
		case same:
			constant = append(constant, c)
		default:
			varying = append(varying, c)
		}
	}
	return constant, varying
}

// lines prints "name: value" of the first row for each of the columns.
func lines(t Table, columns []int) string {
	var b strings.Builder
	for _, c := range columns {
		if s := cell(t.Rows[0][c]); s != "" {
			fmt.Fprintf(&b, "%s: %s\n", t.Columns[c].Name, s)
		}
	}
	return b.String()
}

// plain is columns two blanks apart and a rule below the header: nothing that a
// narrow terminal or a mail would have to carry for decoration.
func plain() table.Style {
	return table.Style{
		Name: "plain",
		Box: table.BoxStyle{
			MiddleHorizontal: "-",
			MiddleSeparator:  "  ",
			MiddleVertical:   "  ",
			UnfinishedRow:    "...",
		},
		Options: table.Options{SeparateColumns: true, SeparateHeader: true},
	}
}

// grid prints the given columns of all rows.
func grid(t Table, columns []int) string {
	w := table.NewWriter()
	w.SetStyle(plain())
	w.SuppressTrailingSpaces()
	header := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		header[i] = t.Columns[c].Name
		align := text.AlignLeft
		if numeric(t, c) {
			align = text.AlignRight
		}
		configs[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align}
	}
	w.AppendHeader(header)
	w.SetColumnConfigs(configs)
	for _, row := range t.Rows {
		cells := make(table.Row, len(columns))
		for i, c := range columns {
			cells[i] = cell(row[c])
		}
		w.AppendRow(cells)
	}
	return w.Render() + "\n"
}

// numeric tells whether a column holds numbers and nothing else.
func numeric(t Table, c int) bool {
	for _, row := range t.Rows {
		if !row[c].IsEmpty() && !row[c].IsNumber() {
			return false
		}
	}
	return true
}

// cell is a value as people read it.
func cell(v Value) string {
	switch v.kind {
	case KindFloat:
		return formatFloat(v.float(), tableDigits)
	case KindString:
		if !printable(v.text) {
			return strconv.Quote(v.text)
		}
	}
	return v.String()
}

// printable tells whether text can stand in a cell as it is: one line, and
// nothing that would steer a terminal.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// width is the length of the longest line.
func width(s string) int {
	longest := 0
	for line := range strings.Lines(s) {
		longest = max(longest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return longest
}
