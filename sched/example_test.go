// SPDX-License-Identifier: Apache-2.0

package sched_test

import (
	"fmt"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
)

// A batch is flushed when its vector is full, or when the next address is lower than
// the last.
func ExampleCut() {
	addrs := []records.Addr{10, 20, 30, 40, 15, 25}
	at := func(i int) records.Addr { return addrs[i] }
	for b := range sched.Cut(len(addrs), at, sched.Buffer{Slots: 3}, false) {
		fmt.Println(addrs[b.From:b.To], b.Flush)
	}
	// Output:
	// [0xa 0x14 0x1e] full
	// [0x28] order
	// [0xf 0x19] final
}
