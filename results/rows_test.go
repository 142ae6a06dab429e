// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"slices"
	"testing"
)

// TestRowsMayBeReused: a stream in any format holds no row that it was given: the caller may write
// the next one into it.
func TestRowsMayBeReused(t *testing.T) {
	tab := textTable([]string{"a"}, []string{"one"}, []string{"two"}, []string{"three"})
	tab.Columns = append(tab.Columns, Column{Name: "n", Kind: Integer})
	for i := range tab.Rows {
		tab.Rows[i] = append(tab.Rows[i], Int(int64(i)))
	}
	for _, f := range formats {
		var whole, stream bytes.Buffer
		if err := Write(&whole, f, tab); err != nil {
			t.Fatal(err)
		}
		w, err := Look{Name: tab.Name}.NewWriter(&stream, f, tab.Columns)
		if err != nil {
			t.Fatal(err)
		}
		row := make([]Value, 2)
		for _, r := range tab.Rows {
			copy(row, r)
			if err := w.Add(row); err != nil {
				t.Fatal(err)
			}
		}
		clear(row)
		if err := w.Add(row[:1]); err == nil || err.Error() != ErrRow.Error()+": 1 cells for 2 columns" {
			t.Errorf("%s: %v, want that a cell is missing", f, err)
		}
		if err := w.Add([]Value{Int(1), Int(2)}); err == nil {
			t.Errorf("%s: a number in a column of text", f)
		}
		if err := w.Close(); err != nil || whole.String() != stream.String() {
			t.Errorf("%s: %v: %q at once, %q in a stream", f, err, whole.String(), stream.String())
		}
	}
}

// TestDocuments: files of a directory have plain names, and a manifest names the documents in their
// order.
func TestDocuments(t *testing.T) {
	d, err := OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a/b": `create result file: "a/b" is not a plain file name`, "": `create result file: "" is not a plain file name`,
		".a": `create result file: ".a" is not a plain file name`,
	} {
		if _, err := d.Create(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	var m Manifest
	m.AddDocument(Document{Name: "plot.svg"})
	if m.AddDocument(Document{Name: "report.md"}); !slices.Equal(m.Documents, []string{"plot.svg", "report.md"}) {
		t.Errorf("%q", m.Documents)
	}
	if err := new(Format).Set("xml"); err == nil || err.Error() != "not one of table, csv, json, benchfmt" {
		t.Error(err)
	}
}
