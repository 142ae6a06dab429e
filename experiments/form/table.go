// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/results"
)

// Table is a small table of a report.
type Table struct {
	Title   string // above it; "" where the template has one
	Columns []string
	Rows    [][]string
}

// String is the table in Markdown.
func (t Table) String() string {
	var b strings.Builder
	if t.Title != "" {
		fmt.Fprintf(&b, "### %s\n\n", t.Title)
	}
	b.WriteString(Head(t.Columns...) + "\n")
	for _, r := range t.Rows {
		b.WriteString(Line(r...) + "\n")
	}
	return b.String()
}

// Line is one line of a table in Markdown.
func Line(cells ...string) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(out, " | ") + " |"
}

// Head is the header of a table in Markdown.
func Head(names ...string) string { return Line(names...) + "\n|" + strings.Repeat("---|", len(names)) }

// heading is a column of a small table: "HEADING = EXPRESSION | FORMAT", of which all
// but the expression may be missing where that is a column's name.
type heading struct {
	name   string
	from   *Expr
	format string
}

func parseHeading(text string) (h heading, err error) {
	rest, format, _ := strings.Cut(text, " | ")
	name, from := rest, rest
	if i := strings.LastIndex(rest, " = "); i >= 0 { // headings can hold one
		name, from = rest[:i], rest[i+len(" = "):]
	}
	h.name, h.format = strings.TrimSpace(name), strings.TrimSpace(format)
	if h.format != "" && results.Say[h.format] == nil {
		return h, fmt.Errorf("%q: there is no format %s", text, h.format)
	}
	h.from, err = ParseExpr(from)
	return h, err
}

func (h heading) cell(r Row) (string, error) {
	v, err := h.from.Eval(r)
	return Said(h.format, v), err
}

func parseHeadings(texts []string) (out []heading, err error) {
	for _, text := range texts {
		h, err := parseHeading(text)
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// lineOf are the cells of a row.
func lineOf(all []heading, r Row) (cells []string, err error) {
	cells = make([]string, len(all))
	for i, h := range all {
		if cells[i], err = h.cell(r); err != nil {
			return nil, err
		}
	}
	return cells, nil
}

// Table is a line for each row, with a cell for each of the columns, such as "rounds" or
// "update (ms) = update_ns | ms".
func (rows Rows) Table(columns ...string) (t Table, err error) {
	all, err := parseHeadings(columns)
	if err != nil {
		return t, err
	}
	for _, h := range all {
		t.Columns = append(t.Columns, h.name)
	}
	for _, r := range rows {
		line, err := lineOf(all, r)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, line)
	}
	return t, nil
}

// Pivot is a line for each group of rows that agree in some columns and, behind these,
// for each value of an expression one column of each of the others: in their headings %s
// stands for the value. Columns of both kinds are separated by semicolons.
func (rows Rows) Pivot(keys, by, others string) (t Table, err error) {
	key, err := parseHeadings(strings.Split(keys, ";"))
	if err != nil {
		return t, err
	}
	other, err := parseHeadings(strings.Split(others, ";"))
	if err != nil {
		return t, err
	}
	values, err := rows.Distinct(by)
	if err != nil {
		return t, err
	}
	for _, h := range key {
		t.Columns = append(t.Columns, h.name)
	}
	for _, v := range values {
		for _, h := range other {
			t.Columns = append(t.Columns, strings.ReplaceAll(h.name, "%s", Said("", v)))
		}
	}
	value, err := ParseExpr(by)
	if err != nil {
		return t, err
	}
	groups, err := rows.Group(keys)
	if err != nil {
		return t, err
	}
	for _, group := range groups {
		line, err := lineOf(key, group[0])
		if err != nil {
			return t, err
		}
		line = append(line, make([]string, len(t.Columns)-len(line))...)
		for _, r := range group {
			v, err := value.Eval(r)
			if err != nil {
				return t, err
			}
			cells, err := lineOf(other, r)
			if err != nil {
				return t, err
			}
			copy(line[len(key)+slices.Index(values, v)*len(other):], cells)
		}
		t.Rows = append(t.Rows, line)
	}
	return t, nil
}
