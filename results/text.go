// SPDX-License-Identifier: Apache-2.0

package results

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// MaxWidth is the width, in characters, above which a single row is printed downwards
// instead of across, and a paragraph is broken, where no screen says how wide it is.
const MaxWidth = 120

// tableDigits is the number of significant digits of a float in a table.
const tableDigits = 6

// Look is how a table for people looks. The zero Look is that of files and pipes.
type Look struct {
	// Name is the table's, which benchmarks are called after.
	Name string
	// Width is that of the screen, in characters; 0 where there is none, and several
	// rows may have any width.
	Width int
	// Paint colours a cell of a column, with escape sequences; nil for no colours.
	Paint func(column, cell string) string
}

// render is the table for people with this look; the package comment says what is left out and why.
func (l Look) render(t Table) string {
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
	across := l.fitting(t, varying)
	if len(constant) == 0 {
		return across
	}
	return l.paragraph(t, constant) + "\n" + across
}

// fitting prints columns across, or as narrow as the screen is.
func (l Look) fitting(t Table, columns []int) string {
	across := l.grid(t, columns, nil)
	switch wide := width(across); {
	case wide <= l.wide(), l.Width == 0 && len(t.Rows) > 1:
		return across
	case len(t.Rows) > 1:
		if wrapped := l.wrapped(t, columns, wide); wrapped != nil {
			return l.grid(t, columns, wrapped)
		}
	}
	return l.downwards(t, columns)
}

// wide is how wide a line may be.
func (l Look) wide() int {
	if l.Width > 0 {
		return l.Width
	}
	return MaxWidth
}

// leastWrapped is how narrow a column of sentences gets before rows are printed
// downwards.
const leastWrapped = 32

// wrapped is how wide the widest column of text may be, by column, so that a grid of so
// much width fits; nil where it would get too narrow to be read.
func (l Look) wrapped(t Table, columns []int, wide int) map[int]int {
	widest, most := 0, 0
	for _, c := range columns {
		longest := 0
		for _, row := range t.Rows {
			if s := t.shown(row, c); strings.Contains(s, " ") {
				longest = max(longest, Displayed(s))
			}
		}
		if longest > most {
			widest, most = c, longest
		}
	}
	if room := most - (wide - l.wide()); room >= max(leastWrapped, len(t.Columns[widest].Name)) {
		return map[int]int{widest: room}
	}
	return nil
}

// paragraph prints what all rows have in common, "name: value" after
// "name: value", broken where the line ends.
func (l Look) paragraph(t Table, columns []int) string {
	var b strings.Builder
	used := 0
	for _, c := range columns {
		s := t.shown(t.Rows[0], c)
		if s == "" {
			continue
		}
		n := Displayed(t.heading(c)) + 2 + Displayed(s)
		s = t.heading(c) + ": " + l.paint(t, c, s)
		switch {
		case used == 0:
		case used+3+n > l.wide():
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
		first, same := t.Rows[0][c], t.constant(c)
		switch {
		case t.Columns[c].Detail:
		case same && first.IsEmpty():
		case same && !t.Columns[c].Lead && len(t.Rows) > 1:
			constant = append(constant, c)
		default:
			varying = append(varying, c)
		}
	}
	return constant, varying
}

// plain is columns two blanks apart and a rule below the header, without decoration, for
// narrow terminals and mails.
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

// grid prints the given columns of all rows; text of wrapped columns goes on in the next
// line.
func (l Look) grid(t Table, columns []int, wrapped map[int]int) string {
	w := table.NewWriter()
	w.SetStyle(plain())
	w.SuppressTrailingSpaces()
	header := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	for i, c := range columns {
		header[i] = t.heading(c)
		align := text.AlignLeft
		if numeric(t, c) {
			align = text.AlignRight
		}
		configs[i] = table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align, WidthMax: wrapped[c],
			WidthMaxEnforcer: text.WrapSoft}
	}
	w.AppendHeader(header)
	w.SetColumnConfigs(configs)
	for _, row := range t.Rows {
		cells := make(table.Row, len(columns))
		for i, c := range columns {
			cells[i] = l.paint(t, c, t.shown(row, c))
		}
		w.AppendRow(cells)
	}
	return w.Render() + "\n"
}

// numeric tells whether a column holds only numbers.
func numeric(t Table, c int) bool {
	for _, row := range t.Rows {
		if _, number := row[c].Number(); !number && !row[c].IsEmpty() {
			return false
		}
	}
	return true
}

// heading is what people read above a column: without the unit that its cells name, if
// no other column is called that.
func (t Table) heading(c int) string {
	name := t.Columns[c].Name
	_, ending := t.Columns[c].said()
	short := strings.TrimSuffix(name, ending)
	if slices.ContainsFunc(t.Columns, func(other Column) bool { return other.Name == short }) {
		return name
	}
	return short
}

// said is how people read the column's numbers, and which ending of its name says so.
func (c Column) said() (say func(float64) string, ending string) {
	for ending, say := range people {
		if strings.HasSuffix(c.Name, ending) {
			return say, ending
		}
	}
	return nil, ""
}

// shown is a cell as people read it.
func (t Table) shown(row []Value, c int) string {
	v := row[c]
	if f, is := v.Number(); is {
		if say, ending := t.Columns[c].said(); ending != "" {
			return say(f)
		}
	}
	return cell(v)
}

func (l Look) paint(t Table, c int, s string) string {
	if l.Paint == nil || s == "" {
		return s
	}
	return l.Paint(t.Columns[c].Name, s)
}

// cell is a value of a column without a unit as people read it.
func cell(v Value) string {
	switch x := v.v.(type) {
	case float64:
		return formatFloat(x, tableDigits)
	case string:
		if !printable(x) {
			return strconv.Quote(x)
		}
	}
	return v.String()
}

// printable tells whether text can stand in a cell unquoted: one line, without
// characters that steer a terminal.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// width is the length of the longest line.
func width(s string) int {
	longest := 0
	for line := range strings.Lines(s) {
		longest = max(longest, Displayed(strings.TrimSuffix(line, "\n")))
	}
	return longest
}

// downwards prints the given columns one below the other and the rows side by side, as
// many as the screen is wide, the next ones below. A single row is "name: value" lines.
func (l Look) downwards(t Table, columns []int) string {
	if len(t.Rows) == 1 {
		return l.lines(t, columns)
	}
	names := 0
	for _, c := range columns {
		names = max(names, len(t.heading(c)))
	}
	var blocks []string
	for from := 0; from < len(t.Rows); {
		to, used := from, names
		var widths []int
		for to < len(t.Rows) {
			n := 0
			for _, c := range columns {
				n = max(n, Displayed(t.shown(t.Rows[to], c)))
			}
			if to > from && used+2+n > l.wide() {
				break
			}
			widths, used, to = append(widths, n), used+2+n, to+1
		}
		blocks = append(blocks, l.block(t, columns, names, from, widths))
		from = to
	}
	return strings.Join(blocks, "\n")
}

// block prints some rows side by side. A cell that is wider than the screen goes on in
// the next line.
func (l Look) block(t Table, columns []int, names, from int, widths []int) string {
	var b strings.Builder
	for _, c := range columns {
		line := text.Pad(t.heading(c), names, ' ')
		for i, n := range widths {
			s := t.shown(t.Rows[from+i], c)
			if room := l.wide() - names - 2; n > room && room > 0 {
				s = Folded(s, room, names+2)
			} else if len(widths) > 1 {
				line += strings.Repeat(" ", n-Displayed(s))
			}
			line += "  " + l.paint(t, c, s)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// lines prints "name: value" of the first row for each of the columns.
func (l Look) lines(t Table, columns []int) string {
	var b strings.Builder
	for _, c := range columns {
		if s := t.shown(t.Rows[0], c); s != "" {
			name := t.heading(c) + ": "
			if l.Width > len(name) {
				s = Folded(s, l.Width-len(name), len(name))
			}
			b.WriteString(name + l.paint(t, c, s) + "\n")
		}
	}
	return b.String()
}

// Folded breaks text at blanks into lines of width characters, and indents all but the first.
func Folded(s string, width, indent int) string {
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"+strings.Repeat(" ", indent))
}

// Displayed is how many characters wide text is on a screen.
func Displayed(s string) int { return text.StringWidthWithoutEscSequences(s) }
