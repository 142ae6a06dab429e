// SPDX-License-Identifier: Apache-2.0

package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/results"
)

// Row is a row by its columns' names. Values are strings, bools, int64, uint64 and
// float64; a cell that does not apply is nil.
type Row map[string]any

// Rows are those of a table.
type Rows []Row

// RowOf is a row of a table with these columns.
func RowOf(columns []results.Column, cells []results.Value) Row {
	row := make(Row, len(columns))
	for i, c := range columns {
		row[c.Name] = cells[i].Any()
	}
	return row
}

// RowsOf are the rows of a table.
func RowsOf(t results.Table) Rows {
	return spelling.Each(t.Rows, func(cells []results.Value) Row { return RowOf(t.Columns, cells) })
}

// operand is a cell as expressions take it: all numbers are float64.
func (r Row) operand(name string) (any, error) {
	v, ok := r[name]
	if !ok {
		switch name {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("there is no column %s", name)
	}
	return number(v), nil
}

// number makes a float64 of whole numbers and leaves all else.
func number(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	}
	return v
}

// Where are the rows that a condition holds of.
func (rows Rows) Where(condition string) (out Rows, err error) {
	e, err := ParseExpr(condition)
	if err != nil {
		return nil, err
	}
	return rows.where(e)
}

func (rows Rows) where(e *Expr) (out Rows, err error) {
	for _, r := range rows {
		ok, err := e.Holds(r)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, r)
		}
	}
	return out, nil
}

// all are those of an expression in each row.
func (rows Rows) all(of string) ([]any, error) {
	e, err := ParseExpr(of)
	if err != nil {
		return nil, err
	}
	return rows.values(e)
}

func (rows Rows) values(e *Expr) ([]any, error) { return spelling.ReadEach(rows, e.Eval) }

// sorted are the rows by the number that an expression is; nil leaves their order.
func (rows Rows) sorted(by *Expr) (Rows, error) {
	if by == nil {
		return rows, nil
	}
	keys, err := rows.values(by)
	if err != nil {
		return nil, err
	}
	order := spelling.Numbers(len(rows))
	number := func(i int) float64 { n, _ := keys[i].(float64); return n }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(number(a), number(b)) })
	return spelling.Each(order, func(at int) Row { return rows[at] }), nil
}

// Sorted are the rows by the number that an expression is, the least first.
func (rows Rows) Sorted(by string) (Rows, error) {
	e, err := ParseExpr(by)
	if err != nil {
		return nil, err
	}
	return rows.sorted(e)
}

// Group are the rows in groups that agree in some expressions, separated by semicolons; groups come in
// the order of their first rows.
func (rows Rows) Group(by string) (out []Rows, err error) {
	keys, err := parseHeadings(strings.Split(by, ";"))
	if err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, r := range rows {
		cells, err := lineOf(keys, r)
		if err != nil {
			return nil, err
		}
		id := strings.Join(cells, "\x00")
		if _, ok := at[id]; !ok {
			at[id] = len(out)
			out = append(out, nil)
		}
		out[at[id]] = append(out[at[id]], r)
	}
	return out, nil
}

// Each is the first row of each of these groups.
func (rows Rows) Each(by string) (out Rows, err error) {
	groups, err := rows.Group(by)
	for _, g := range groups {
		out = append(out, g[0])
	}
	return out, err
}

// First is the first row; nil if there is none.
func (rows Rows) First() Row {
	if len(rows) == 0 {
		return nil
	}
	return rows[0]
}

// Most is the first of the rows in which a number is greatest; nil if none has it.
func (rows Rows) Most(of string) (Row, error) {
	row, _, err := rows.extreme(of, 1)
	return row, err
}

// Least is the first of the rows in which it is least.
func (rows Rows) Least(of string) (Row, error) {
	row, _, err := rows.extreme(of, -1)
	return row, err
}

// Max is the greatest value of an expression; 0 if no row has one.
func (rows Rows) Max(of string) (float64, error) {
	_, v, err := rows.extreme(of, 1)
	return v, err
}

// Min is the least.
func (rows Rows) Min(of string) (float64, error) {
	_, v, err := rows.extreme(of, -1)
	return v, err
}

// extreme is the first row in which a number is greatest, or with the sign -1 least, and that number.
func (rows Rows) extreme(of string, sign float64) (out Row, best float64, err error) {
	values, err := rows.all(of)
	for i, v := range values {
		if f, ok := v.(float64); ok && (out == nil || sign*f > sign*best) {
			out, best = rows[i], f
		}
	}
	return out, best, err
}

// List is the value of an expression in each row, with commas between them.
func (rows Rows) List(of string) (string, error) {
	values, err := rows.all(of)
	return strings.Join(printed(values), ", "), err
}

// Distinct are the values of an expression, each once, in the order in which they come.
func (rows Rows) Distinct(of string) (out []any, err error) {
	values, err := rows.all(of)
	for _, v := range values {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, err
}

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
	out := spelling.Each(cells, func(c string) string { return strings.ReplaceAll(c, "|", `\|`) })
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

func parseHeadings(texts []string) ([]heading, error) { return spelling.ReadEach(texts, parseHeading) }

// lineOf are the cells of a row.
func lineOf(all []heading, r Row) ([]string, error) {
	return spelling.ReadEach(all, func(h heading) (string, error) {
		v, err := h.from.Eval(r)
		return Said(h.format, v), err
	})
}

// Table is a line for each row, with a cell for each of the columns, such as "rounds" or
// "update (ms) = update_ns | ms".
func (rows Rows) Table(columns ...string) (t Table, err error) {
	all, err := parseHeadings(columns)
	if err != nil {
		return t, err
	}
	t.Columns = spelling.Each(all, func(h heading) string { return h.name })
	t.Rows, err = spelling.ReadEach(rows, func(r Row) ([]string, error) { return lineOf(all, r) })
	return t, err
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
	t.Columns = spelling.Each(key, func(h heading) string { return h.name })
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
