// SPDX-License-Identifier: Apache-2.0

package interrupts_test

import (
	"fmt"

	"github.com/textpoke/textpoke/results/interrupts"
)

// Every round interrupts each CPU but its sender once, so that what CPUs received
// tells how many rounds there were and who sent them.
func ExampleExplain() {
	e := interrupts.Explain([]int64{504, 504, 0, 504})
	fmt.Println(e.Rounds, "rounds, sent by each CPU:", e.Sent)
	// Output:
	// 504 rounds, sent by each CPU: [0 0 504 0]
}
