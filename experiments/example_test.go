// SPDX-License-Identifier: Apache-2.0

package experiments_test

import (
	"context"
	"fmt"
	"log"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/batches"
)

// One table whose groups do not ascend, in two vectors: the answer in one line, what
// the table's own order costs, and what cannot be asked.
func Example() {
	request := batches.FlushCause().New()
	for field, text := range map[string]string{"records": "gen:n=45000,groups=64,order=grouped", "buffer": "256,dynamic"} {
		if err := request.Field(field).Set(text); err != nil {
			log.Fatal(err)
		}
	}
	answer, err := request.Run(context.Background(), experiments.Lab{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Headline)
	for _, row := range answer.Table.Rows[:2] {
		fmt.Println("vector", row[3], "takes", row[11], "rounds, sorted", row[14])
	}
	fmt.Println(request.Field("buffer").Set("-1"))
	// Output:
	// One sort before queueing saves 105 of the 108 rounds of gen:n=45000,groups=64,order=grouped (vector dynamic)
	// vector 256 takes 576 rounds, sorted 528
	// vector dynamic takes 108 rounds, sorted 3
	// want a number of slots from 1 to 1073741824, or dynamic
}
