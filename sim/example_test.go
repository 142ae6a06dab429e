// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// What enabling every function of a real kernel costs with 256 slots, by counting
// alone.
func ExampleJob_Count() {
	job, err := sim.NewJob(sim.Config{Buffer: sched.Buffer{Slots: 256}})
	if err != nil {
		fmt.Println(err)
		return
	}
	row, err := job.Count(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(row.Patches, "patches,", row.Flushes, "batches,", row.Rounds, "rounds,", row.IPIs, "interrupts on 8 CPUs")
	// Output:
	// 42757 patches, 168 batches, 504 rounds, 3528 interrupts on 8 CPUs
}
