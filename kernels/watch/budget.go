// SPDX-License-Identifier: Apache-2.0

package watch

import "github.com/textpoke/textpoke/results/budget"

// Limits are what rows can be limited in.
var Limits = budget.Quantities{
	{Name: "rounds", Columns: []string{"rounds"}, Doc: "of an interval"},
	{Name: "burst", Columns: []string{"burst"}, Doc: "interrupts that a CPU takes in an interval"},
	{Name: "isolated", Columns: []string{"isolated"}, Doc: "the same of isolated CPUs"},
}
