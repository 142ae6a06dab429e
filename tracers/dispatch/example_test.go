// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// What a hundred tracers of another function add to a call of this one.
func Example() {
	functions := dispatch.Config{Sites: []records.Addr{0xffffffff81001000},
		Elsewhere: []records.Addr{0xffffffff81002000}}
	for _, name := range []string{"list", "call-ops"} {
		kind, err := dispatch.Parse(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		way, err := kind.New(functions)
		if err != nil {
			fmt.Println(err)
			return
		}
		for i := range 101 {
			if err := way.Attach(tracers.NewOps("tracer", tracers.CountHits, 0, min(i, 1))); err != nil {
				fmt.Println(err)
				return
			}
		}
		var task dispatch.Task
		var counts dispatch.Counts
		task.Count(&counts)
		way.Call(0, &task)
		fmt.Printf("%s: %d called, %d loads, %d entries walked\n", name, task.Hits, counts.Loads, counts.Walked)
	}
	// Output:
	// list: 1 called, 305 loads, 101 entries walked
	// call-ops: 1 called, 2 loads, 0 entries walked
}
