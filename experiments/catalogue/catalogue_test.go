// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"
	"testing"
)

// TestAll: each experiment says all that the command line needs of it.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if e.Name == "" || seen[e.Name] || !strings.HasSuffix(e.Question, "?") || e.Short == "" || e.About == "" ||
			len(e.Examples) == 0 {
			t.Errorf("%+v", e)
		}
		seen[e.Name] = true
		for _, example := range e.Examples {
			if !strings.HasPrefix(example, e.Name) {
				t.Errorf("%s: example %q", e.Name, example)
			}
		}
		table := e.Table()
		if err := table.Check(); err != nil || table.Name != e.Name {
			t.Errorf("%s: table %s: %v", e.Name, table.Name, err)
		}
		for _, f := range e.New().Fields {
			if f.Doc == "" || f.Type == "" || f.Default != "" && f.String() == "" {
				t.Errorf("%s: field %s: %q, %s", e.Name, f.Name, f.Doc, f.Type)
			}
			if f.IsFile(f.Default) && f.Default != "" {
				t.Errorf("%s: the default of %s is a file", e.Name, f.Name)
			}
		}
	}
	table, err := List()
	if err != nil || len(table.Rows) != len(All()) {
		t.Fatalf("%d rows, %v", len(table.Rows), err)
	}
}
