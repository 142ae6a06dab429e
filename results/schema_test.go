// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// compiled is a table's schema as another program reads it.
func compiled(t rapid.TB, tab Table) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(SchemaOf(tab))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("table.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("table.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// valid tells whether a text follows a schema.
func valid(t rapid.TB, s *jsonschema.Schema, text string) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc) == nil
}

// TestSchemaOfAnyTable: whatever is written follows the table's schema, and is read back
// as it was written.
func TestSchemaOfAnyTable(t *testing.T) {
	columns := []Column{{Name: "a"}, {Name: "b", Kind: Integer}, {Name: "c", Kind: Number}, {Name: "d", Kind: Boolean}}
	s := compiled(t, Table{Columns: columns})
	rapid.Check(t, func(t *rapid.T) {
		tab := drawRows(t, Table{Columns: columns})
		var b bytes.Buffer
		if err := Write(&b, FormatJSON, tab); err != nil {
			t.Fatal(err)
		}
		if !valid(t, s, b.String()) {
			t.Fatalf("refused: %s", b.String())
		}
		var again, first bytes.Buffer
		if err := WriteCSV(&first, tab); err != nil {
			t.Fatal(err)
		}
		back, err := ReadCSV(bytes.NewReader(first.Bytes()), tab.Name, tab.Columns)
		if err == nil {
			err = WriteCSV(&again, back)
		}
		if err != nil || !bytes.Equal(first.Bytes(), again.Bytes()) {
			t.Fatalf("%q came back as %q, %v", first.String(), again.String(), err)
		}
	})
}

// TestSchemaRefuses: a schema that nothing breaks says nothing.
func TestSchemaRefuses(t *testing.T) {
	s := compiled(t, Table{Name: "t", Columns: []Column{{Name: "name"}, {Name: "n", Kind: Integer},
		{Name: "took_ns", Kind: Number}, {Name: "safe", Kind: Boolean}}})
	const good = `[{"name": "a", "n": 1, "took_ns": 0.5, "safe": true}]`
	if !valid(t, s, good) || !valid(t, s, `[{"name": null, "n": null, "took_ns": null, "safe": null}]`) || !valid(t, s, "[]") {
		t.Error("what is right is refused")
	}
	for _, change := range [][2]string{
		{`"a"`, `1`}, {`1,`, `1.5,`}, {`1,`, `"1",`}, {`0.5`, `"0.5"`}, {`true`, `"true"`}, {`true`, `0`},
		{`"name": "a", `, ``}, {`"safe"`, `"saved"`}, {`"safe": true`, `"safe": true, "more": 1`}, {`[{`, `{`},
	} {
		text := strings.Replace(good, change[0], change[1], 1)
		if change[1] == "{" {
			text = strings.TrimSuffix(text, "]")
		}
		if valid(t, s, text) {
			t.Errorf("accepted: %s", text)
		}
	}
}

func TestReadCSVRefuses(t *testing.T) {
	columns := []Column{{Name: "a"}, {Name: "n", Kind: Integer}}
	for _, text := range []string{"", "a\nx\n", "a,m\nx,1\n", "a,n\nx,1.5\n", "a,n\nx,y\n", "a,n\nx\n", "a,n\nx,NaN\n"} {
		if _, err := ReadCSV(strings.NewReader(text), "t", columns); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
