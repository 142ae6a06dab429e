// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// Col declares one column of tables whose rows are made of values of type R: what
// the column is called and means, and how its cell follows from a row. It is the
// only place where a column is described.
type Col[R any] struct {
	Column
	// Cell is what [ValueOf] takes, or [Empty] where the column does not apply.
	Cell func(R) any
}

// Columns declares a table, one [Col] a column, from left to right.
type Columns[R any] []Col[R]

// Table is an empty table with these columns.
func (cs Columns[R]) Table(name string) Table {
	t := Table{Name: name, Columns: make([]Column, len(cs))}
	for i, c := range cs {
		t.Columns[i] = c.Column
	}
	return t
}

// Cells is a row, in the order of the columns.
func (cs Columns[R]) Cells(row R) []any {
	cells := make([]any, len(cs))
	for i, c := range cs {
		cells[i] = c.Cell(row)
	}
	return cells
}

// Row is a row as [Table] keeps it, or [ErrRow] where a cell is none.
func (cs Columns[R]) Row(row R) ([]Value, error) {
	return spelling.ReadEach(cs, func(c Col[R]) (Value, error) { return c.value(c.Cell(row)) })
}

// Fill is a table with one row for each of rows.
func (cs Columns[R]) Fill(name string, rows []R) (t Table, err error) {
	t = cs.Table(name)
	t.Rows, err = spelling.ReadEach(rows, cs.Row)
	return t, err
}

// AddTo adds the values of a row to those that are known of it by name.
func (cs Columns[R]) AddTo(facts map[string]any, row R) error {
	for _, c := range cs {
		v, err := ValueOf(c.Cell(row))
		if err != nil {
			return fmt.Errorf("%w: column %s: %w", ErrRow, c.Name, err)
		}
		facts[c.Name] = v.Any()
	}
	return nil
}

// When leaves the cells of these columns empty in rows where they do not apply.
func (cs Columns[R]) When(applies func(R) bool) Columns[R] {
	out := make(Columns[R], len(cs))
	for i, c := range cs {
		out[i] = c
		out[i].Cell = func(row R) any {
			if !applies(row) {
				return Empty
			}
			return c.Cell(row)
		}
	}
	return out
}

// Of makes columns of a part of a row columns of the whole row.
func Of[Whole, Part any](cs Columns[Part], part func(Whole) Part) Columns[Whole] {
	out := make(Columns[Whole], len(cs))
	for i, c := range cs {
		out[i] = Col[Whole]{c.Column, func(row Whole) any { return c.Cell(part(row)) }}
	}
	return out
}

// If is a cell, or [Empty] where it does not apply.
func If(applies bool, cell any) any {
	if !applies {
		return Empty
	}
	return cell
}

// OrEmpty is the cell of a text that may be missing.
func OrEmpty(s string) any {
	if s == "" {
		return Empty
	}
	return s
}

type ending struct{ suffix, unit string }

// units are the endings of names of columns, the longer first where one ends in
// another.
var units = []ending{
	{"_per_s", "1/s"}, {"_per_ms", "1/ms"}, {"_ns", "ns"}, {"_us", "us"}, {"_ms", "ms"}, {"_s", "s"}, {"_bytes",
		"B"}, {"_pages", "pages"},
}

// Unit is what the column's figures are counted in, as its name says; "" for counts,
// shares and text.
func (c Column) Unit() string {
	return spelling.First(units, func(u ending) bool { return strings.HasSuffix(c.Name, u.suffix) }).unit
}

// SchemaDialect is the JSON Schema that schemas are written in.
const SchemaDialect = "https://json-schema.org/draft/2020-12/schema"

// Schema is a JSON Schema of a table in [FormatJSON].
type Schema struct {
	Dialect     string     `json:"$schema,omitempty"`
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	Type        any        `json:"type,omitempty"` // a name, or a list of names
	Unit        string     `json:"unit,omitempty"` // that a column's numbers are counted in: no word of the dialect
	AnyOf       []Schema   `json:"anyOf,omitempty"`
	Items       *Schema    `json:"items,omitempty"`
	Properties  []Property `json:"-"`
	Required    []string   `json:"required,omitempty"`
	Closed      *bool      `json:"additionalProperties,omitempty"`
	Defs        []Property `json:"-"`
}

// Property is a named schema.
type Property struct {
	Name string
	Schema
}

// MarshalJSON writes properties and definitions in their order.
func (s Schema) MarshalJSON() ([]byte, error) {
	type plain Schema
	return json.Marshal(struct {
		plain
		Properties ordered `json:"properties,omitempty"`
		Defs       ordered `json:"$defs,omitempty"`
	}{plain(s), s.Properties, s.Defs})
}

// MarshalJSON writes the schema of a property.
func (p Property) MarshalJSON() ([]byte, error) { return p.Schema.MarshalJSON() }

// ordered is an object whose members keep their order.
type ordered []Property

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := quoteJSON(p.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		b.Write(append(append(name, ':'), value...))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// SchemaOf is the schema of a table's rows as JSON: a list of objects that have a member
// for each column and no other. A cell that does not apply is null.
func SchemaOf(t Table) Schema {
	closed := false
	row := Schema{Type: "object", Closed: &closed}
	for _, c := range t.Columns {
		kind := string(c.Kind)
		if c.Kind == Text {
			kind = "string"
		}
		row.Properties = append(row.Properties, Property{c.Name,
			Schema{Description: c.Doc, Type: []string{kind, "null"}, Unit: c.Unit()}})
		row.Required = append(row.Required, c.Name)
	}
	return Schema{Title: t.Name, Type: "array", Items: &row}
}
