// SPDX-License-Identifier: Apache-2.0

package experiments_test

import (
	"context"
	"fmt"
	"log"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/flushcause"
	"github.com/textpoke/textpoke/sched"
)

// One table whose groups do not ascend, in two vectors: the answer in one line, what
// the table's own order costs, and what cannot be asked.
func Example() {
	c := flushcause.Config{
		Records: []string{"gen:n=45000,groups=64,order=grouped"},
		Buffers: []sched.Buffer{{Slots: 256}, sched.Dynamic},
	}
	answer, err := flushcause.Run(context.Background(), c, experiments.Lab{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Headline)
	for _, row := range answer.Table.Rows[:2] {
		fmt.Println("vector", row[3], "takes", row[11], "rounds, sorted", row[14])
	}
	fmt.Println(flushcause.Config{Buffers: []sched.Buffer{{Slots: -1}}}.Validate())
	// Output:
	// One sort before queueing saves 105 of the 108 rounds of gen:n=45000,groups=64,order=grouped (vector dynamic)
	// vector 256 takes 576 rounds, sorted 528
	// vector dynamic takes 108 rounds, sorted 3
	// buffer: want numbers of slots, 1 or more, or dynamic
}
