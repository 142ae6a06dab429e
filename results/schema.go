// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
)

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
