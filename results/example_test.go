// SPDX-License-Identifier: Apache-2.0

package results_test

import (
	"fmt"
	"os"

	"github.com/textpoke/textpoke/results"
)

// A table is its columns, each declared once; the same rows are for people and for
// scripts.
func Example() {
	type update struct {
		buffer string
		rounds int
	}
	columns := results.Columns[update]{
		{Column: results.Column{Name: "buffer", Doc: "slots of the vector"}, Cell: func(u update) any { return u.buffer }},
		{Column: results.Column{Name: "rounds", Kind: results.Integer, Doc: "requests to synchronise"},
			Cell: func(u update) any { return u.rounds }},
	}
	table, err := columns.Fill("plan", []update{{"256", 504}, {"dynamic", 3}})
	if err == nil {
		err = results.Write(os.Stdout, results.FormatCSV, table)
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// buffer,rounds
	// 256,504
	// dynamic,3
}
