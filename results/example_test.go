package results_test

import (
	"fmt"
	"os"

	"github.com/textpoke/textpoke/results"
)

func ExampleWriteTable() {
	t := results.Table{Name: "plan", Columns: []results.Column{
		{Name: "arch", Doc: "The architecture."},
		{Name: "buffer", Doc: "The slots of the buffer."},
		{Name: "rounds", Doc: "The rounds it takes."},
		{Name: "elapsed_ns", Doc: "How long it took; empty when it only was counted."},
	}}
	for _, row := range [][]any{
		{"x86_64", "256", 657, results.Empty},
		{"x86_64", "dynamic", 3, results.Empty},
	} {
		if err := t.Add(row...); err != nil {
			fmt.Println(err)
		}
	}
	if err := results.WriteTable(os.Stdout, t); err != nil {
		fmt.Println(err)
	}
	// Output:
	// arch: x86_64
	//
	// buffer   rounds
	// -------  ------
	// 256         657
	// dynamic       3
}
