// SPDX-License-Identifier: Apache-2.0

package calibration_test

import (
	"fmt"

	"github.com/textpoke/textpoke/kernels/calibration"
)

// A calibration is what everything takes on one machine, with where each number
// comes from.
func Example() {
	c, err := calibration.Open("refcount-480")
	if err != nil {
		fmt.Println(err)
		return
	}
	assumed := 0
	for _, e := range c.Entries {
		if e.Basis == calibration.Assumed {
			assumed++
		}
	}
	fmt.Println(c.CPUs, "CPUs of", c.Arch, "-", assumed, "of", len(c.Entries), "quantities are assumed")
	// Output:
	// 480 CPUs of x86_64 - 30 of 34 quantities are assumed
}
