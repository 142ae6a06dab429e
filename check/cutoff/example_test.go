// SPDX-License-Identifier: Apache-2.0

package cutoff_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/check/cutoff"
	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Is the breakpoint protocol safe on any number of CPUs?
func ExampleOf() {
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		panic(err)
	}
	s := explore.Setup{
		Arch: arch, Protocol: poke.Named("breakpoint", arch.Traits()), Roles: make([]cpus.Role, 2), Sites: 1,
	}
	m, err := s.Model()
	if err != nil {
		panic(err)
	}
	a, err := cutoff.Of(context.Background(), m, 0)
	if err != nil {
		panic(err)
	}
	for _, c := range a.Conditions {
		fmt.Println(c.Name, c.Holds)
	}
	r, err := explore.Explore(context.Background(), a.Model, explore.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s on %d CPUs; any number: %t\n", r.Verdict, len(a.Roles), a.Holds() && r.Verdict == explore.Safe)
	// Output:
	// all-states true
	// noted true
	// private true
	// every-cpu true
	// same-without true
	// safe on 2 CPUs; any number: true
}
