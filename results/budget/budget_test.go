// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"testing"

	"github.com/textpoke/textpoke/results"
)

var all = Quantities{{Name: "ipis", Columns: []string{"first", "second"}, Doc: "interrupts"},
	{Name: "update", Columns: []string{"ns"}, Time: true, Doc: "time"}}

func Example() {
	limits, err := all.Parse([]string{"ipis=3", "update=1ms"})
	columns := []results.Column{{Name: "second"}, {Name: "ns"}}
	over, unknown := Exceeded(limits, columns, []results.Value{results.Int(5), results.Int(1_000_000)})
	fmt.Println(Say(over), unknown, err)
	_, unknown = Exceeded(limits, columns, []results.Value{results.Int(3), results.Empty})
	fmt.Println(unknown)
	// Output:
	// ipis 5, 2 over the budget of 3 [] <nil>
	// [update=1ms]
}

// TestFirstColumn: the first column that a row knows counts.
func TestFirstColumn(t *testing.T) {
	limits, err := all.Parse([]string{"ipis=1"})
	if err != nil {
		t.Fatal(err)
	}
	columns := []results.Column{{Name: "second"}, {Name: "first"}}
	for want, row := range map[float64][]results.Value{7: {results.Int(3), results.Int(7)}, 3: {results.Int(3), results.Empty}} {
		if over, _ := Exceeded(limits, columns, row); len(over) != 1 || over[0].Got != want {
			t.Errorf("%v: %v, want %v", row, over, want)
		}
	}
}
