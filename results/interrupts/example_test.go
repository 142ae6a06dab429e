package interrupts_test

import (
	"fmt"

	"github.com/textpoke/textpoke/results/interrupts"
)

// Disabling the function tracer in 2019: 661 rounds, and the patcher migrated.
func ExampleExplain() {
	e := interrupts.Explain([]int64{631, 661, 30, 661, 661, 661, 661, 661})
	fmt.Println(e.Rounds, e.Sent, e.Migrated)
	// Output: 661 [30 0 631 0 0 0 0 0] true
}

// 657 rounds of the three-phase protocol with 256 slots are 219 batches.
func ExamplePatches() {
	p, err := interrupts.Patches(657, 256, interrupts.Range{})
	fmt.Println(p.Batches.Hi, p.Min, p.Max, err)
	// Output: 219 55809 56064 <nil>
}
