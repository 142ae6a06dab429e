// SPDX-License-Identifier: Apache-2.0

package coordinator_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/sched/coordinator"
)

// Two tracers want overlapping sets of call sites. What the second one asks for
// and the first one has enabled already costs nothing.
func Example() {
	ctx := context.Background()
	c, err := coordinator.New(ctx, coordinator.Config{
		Records: 100,
		Apply: func(_ context.Context, changes []coordinator.Change) error {
			fmt.Println("one update:", changes)
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range []coordinator.Request{
		{Client: "function", Enable: true, Records: []int{3, 4}},
		{Client: "kprobe", Enable: true, Records: []int{4}},
		{Client: "function", Enable: false, Records: []int{3, 4}},
	} {
		if err := c.Do(ctx, r); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("still enabled:", c.Snapshot().Enabled())
	if err := c.Close(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// one update: [{3 true} {4 true}]
	// one update: [{3 false}]
	// still enabled: 1
}
