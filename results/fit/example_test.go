// SPDX-License-Identifier: Apache-2.0

package fit_test

import (
	"fmt"

	"github.com/textpoke/textpoke/results/fit"
)

// What a round takes, and what each further target adds.
func ExampleFit() {
	targets := []float64{1, 7, 23, 79}
	us := []float64{2.5, 8.4, 24.6, 80.4}
	line, err := fit.Fit(targets, us, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.1f us and %.2f us a target\n", line.Intercept.Value, line.Slope.Value)
	// Output:
	// 1.5 us and 1.00 us a target
}
