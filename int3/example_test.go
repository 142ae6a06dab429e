// SPDX-License-Identifier: Apache-2.0

package int3_test

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
)

// A trap handler asks which of a batch's breakpoints it ran into.
func Example() {
	var batch int3.Batch
	for i := range 256 {
		batch.Addrs = append(batch.Addrs, 0xffffffff81000000+records.Addr(64*i))
	}
	for _, kind := range []int3.Lookup{int3.BTree, int3.Vector} {
		var p cpus.Probe
		slot, found := int3.Build(kind, batch).Find(0xffffffff81000040, &p)
		fmt.Println(kind, slot, found, "in", p.Comparisons, "comparisons")
	}
	_, found := int3.Build(int3.BTree, batch).Find(0xffffffff81000041, &cpus.Probe{})
	fmt.Println("between two sites:", found)
	// Output:
	// btree 1 true in 9 comparisons
	// vector 1 true in 8 comparisons
	// between two sites: false
}
