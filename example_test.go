// SPDX-License-Identifier: Apache-2.0

package textpoke_test

import (
	"context"
	"fmt"
	"log"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

func Example() {
	ctx := context.Background()
	table, err := records.Open(ctx, "gen:n=1000", records.Options{})
	if err != nil {
		log.Fatal(err)
	}
	job, err := sim.NewJob(sim.Config{Table: table, Buffer: sched.Buffer{Slots: 256}})
	if err != nil {
		log.Fatal(err)
	}
	machine, err := sim.NewLive(job)
	if err != nil {
		log.Fatal(err)
	}
	defer machine.Close()
	row, err := machine.Update(ctx, true)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Patches, "sites enabled with", row.Rounds, "rounds")
	fmt.Println("violations:", row.Violations)
	// Output:
	// 1000 sites enabled with 12 rounds
	// violations: 0
}
