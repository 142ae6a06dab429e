// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package live_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/poke/live"
)

// A loop has two call sites. They are switched on while it runs, count what passes, and
// are switched off again.
func Example() {
	switches, err := live.Define(2, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	const begins, ends = 0, 1
	var counted [2]atomic.Int64
	var end atomic.Bool
	var loop sync.WaitGroup
	loop.Go(func() {
		caller, err := switches.Register()
		if err != nil {
			panic(err)
		}
		defer caller.Unregister()
		for !end.Load() {
			for _, site := range []int{begins, ends} {
				if caller.Call(site) {
					counted[site].Add(1)
				}
			}
		}
	})
	ctx := context.Background()
	fmt.Println("enable:", switches.Enable(ctx, begins, ends))
	for counted[ends].Load() < 1000 {
	}
	fmt.Println("disable:", switches.Disable(ctx, begins))
	end.Store(true)
	loop.Wait()
	fmt.Println("both counted:", counted[begins].Load() > 0 && counted[ends].Load() >= 1000)
	fmt.Println("sites whole:", switches.Check() == nil)
	fmt.Println("close:", switches.Close())
	// Output:
	// enable: <nil>
	// disable: <nil>
	// both counted: true
	// sites whole: true
	// close: <nil>
}
