// SPDX-License-Identifier: Apache-2.0

package attachcost_test

import (
	"fmt"

	"github.com/textpoke/textpoke/kernels/attachcost"
)

// What attaching to 1,000 functions takes, one by one and all at once.
func Example() {
	kernels, err := attachcost.Kernels()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, k := range kernels {
		for _, w := range attachcost.Ways() {
			if k.Name != "x86_64-7.2" || w.In(k) != nil {
				continue
			}
			c, err := attachcost.Attach(k, w, 1000, 42757)
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Printf("%s: %d rounds, %d records walked\n", w.Name, c.AllRounds(), c.Walked)
		}
	}
	// Output:
	// fentry: 4013 rounds, 129271000 records walked
	// global-trampoline: 61 rounds, 1551244 records walked
	// tracing-multi: 1025 rounds, 129271 records walked
	// kprobe-multi: 28 rounds, 86514 records walked
}
