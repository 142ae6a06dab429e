// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/sim"
	"github.com/textpoke/textpoke/sim/axis"
)

// Is the kernel's protocol safe on x86_64 and arm64, and with its first round left out?
// What breaks is forced on the live machine.
func Example() {
	for _, choices := range []axis.Choices{
		{"arch": {"x86_64", "arm64"}, "sites": {"1"}, "cpus": {"2"}},
		{"arch": {"x86_64"}, "sites": {"1"}, "cpus": {"2"}, "mutate": {"drop-sync-1"}},
	} {
		questions, _, err := check.Questions(choices)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, q := range questions {
			row, err := q.Ask(context.Background(), explore.Options{})
			if err != nil {
				fmt.Println(err)
				return
			}
			if fmt.Printf("%s %s: %s", q.Arch.Traits().Name, q.Mutation, row.Verdict); row.Trace != nil {
				again, err := check.Replay(sim.LiveEngine, q.Model, row.Trace)
				fmt.Printf(", %s in %d steps, on goroutines: %s %v", row.Violation.Property, row.Depth, again.Property, err)
			}
			fmt.Println()
		}
	}
	// Output:
	// x86_64 : safe
	// arm64 : safe
	// x86_64 drop-sync-1: unsafe, torn-fetch in 9 steps, on goroutines: torn-fetch <nil>
}
