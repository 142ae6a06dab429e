// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// twoCPUs is a machine of two CPUs that updates one site as its architecture does.
func twoCPUs(name string) explore.Setup {
	arch, err := cpus.ParseArch(name)
	if err != nil {
		panic(err)
	}
	return explore.Setup{Arch: arch, Protocol: poke.Named(poke.Native, arch.Traits()), Roles: make([]cpus.Role, 2), Sites: 1}
}

// Every interleaving of a small machine that updates one site without the first
// round, and the shortest way to break it.
func Example() {
	setup := twoCPUs("x86_64")
	shape, err := setup.Shape()
	if err != nil {
		fmt.Println(err)
		return
	}
	if setup.Mutation, err = setup.Protocol.Mutation("drop-sync-1", shape); err != nil {
		fmt.Println(err)
		return
	}
	model, err := setup.Model()
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := explore.Explore(context.Background(), model, explore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Verdict, result.Violation.Property, "in", result.Depth, "steps")
	// Output:
	// unsafe torn-fetch in 8 steps
}

// A question of one's own, asked of every state: does a CPU hold a reference to the batch while it owes an answer? The walk
// meets as many states and steps as the search.
func ExampleWalk() {
	setup := twoCPUs("x86_64")
	model, err := setup.Model()
	if err != nil {
		fmt.Println(err)
		return
	}
	var states, steps, held int
	err = explore.Walk(context.Background(), model, 10_000, func(is *explore.Moment) {
		states++
		if _, asked, _ := is.Asked(1); asked && is.References(1) > 1 {
			held++
		}
	}, func(explore.Move) { steps++ })
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := explore.Explore(context.Background(), model, explore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held > 0, states == int(result.States), steps == int(result.Transitions))
	// Output:
	// true true true
}
