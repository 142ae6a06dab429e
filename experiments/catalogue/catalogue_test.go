package catalogue

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestAll: each experiment says all that the command line needs of it.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range All() {
		if e.Name == "" || seen[e.Name] || !strings.HasSuffix(e.Question, "?") || e.Short == "" || e.About == "" || len(e.Examples) == 0 {
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
		if e.Flags != nil && e.Flags(pflag.NewFlagSet(e.Name, pflag.ContinueOnError)) == nil {
			t.Errorf("%s: nothing runs it", e.Name)
		}
	}
	table, err := List()
	if err != nil || len(table.Rows) != len(All()) {
		t.Fatalf("%d rows, %v", len(table.Rows), err)
	}
}
