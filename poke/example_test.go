// SPDX-License-Identifier: Apache-2.0

package poke_test

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// A protocol makes a plan of a batch: a flat list of steps that can be printed,
// counted, mutated, checked and executed.
func Example() {
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		fmt.Println(err)
		return
	}
	traits := arch.Traits()
	protocol := poke.Named(poke.Native, traits)
	batch := func(yield func(poke.Range) bool) { yield(poke.Range{From: 0, To: 256}) }
	var count poke.Count
	err = protocol.Compile(poke.Shape{Traits: traits, Len: 5, Patches: 256}, batch, func(st poke.Step) {
		fmt.Println(st)
		count.Add(st)
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(count.Rounds, "rounds,", count.IPIs(8, 0), "interrupts on 8 CPUs")
	// Output:
	// Verify 0..255
	// Publish 0..255
	// Write breakpoint 0..255
	// Sync 1
	// Write tail 0..255
	// Sync 2
	// Write head 0..255
	// Sync 3
	// Unpublish
	// WaitHandlers
	// 3 rounds, 21 interrupts on 8 CPUs
}
