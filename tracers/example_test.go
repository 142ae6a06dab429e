// SPDX-License-Identifier: Apache-2.0

package tracers_test

import (
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus/x86_64"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/tracers"
)

// Two tracers share a function; then one has the other function for itself.
func Example() {
	core, err := tracers.New(tracers.Config{
		Arch:    x86_64.Arch,
		Records: []records.Addr{0xffffffff81000000, 0xffffffff81000040},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	first := tracers.NewOps("first", tracers.CountHits, 0, 0, 1)
	second := tracers.NewOps("second", tracers.CountHits, tracers.OpsDynamic, 1)
	for _, o := range []*tracers.Ops{first, second} {
		report, err := core.Attach(o)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d sites change, now %s\n", o.Name, report.Patches(), core.Flags(1))
	}
	called, err := core.Call(1)
	if err != nil {
		fmt.Println(err)
	}
	for _, c := range called {
		fmt.Println("called:", c.Ops.Name)
	}
	_, err = core.Attach(first)
	fmt.Println(errors.Is(err, tracers.EBUSY), err)
	// Output:
	// first: 2 sites change, now 1 ENABLED TRAMP TRAMP_EN TOUCHED
	// second: 1 sites change, now 2 ENABLED TOUCHED
	// called: second
	// called: first
	// true -EBUSY: ops first: it is attached already
}
