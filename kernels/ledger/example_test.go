// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"

	"github.com/textpoke/textpoke/kernels/ledger"
)

// What echo function > current_tracer sends on a kernel besides the rounds of its
// records, and what every other CPU takes in all.
func Example() {
	k, err := ledger.Named("x86_64-6.12")
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := k.Ledger(ledger.FunctionTracer, true, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(k.SyncRow, k.Takes(entries, 168, 42757, false)[k.SyncRow])
	// Output:
	// CAL 553
}
