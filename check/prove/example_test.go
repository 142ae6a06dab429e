// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/check/prove"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// What the x86_64 kernel does is proved for any number of CPUs and sites; without the second round it is not.
func Example() {
	arch, err := cpus.ParseArch("x86_64")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range []struct{ protocol, mutation string }{{poke.Native, ""}, {poke.Native, "drop-sync-2"}} {
		setup := explore.Setup{Arch: arch, Protocol: poke.Named(q.protocol, arch.Traits()), Roles: make([]cpus.Role, 2),
			Sites: 1}
		if q.mutation != "" {
			shape, err := setup.Shape()
			if err != nil {
				fmt.Println(err)
				return
			}
			if setup.Mutation, err = setup.Protocol.Mutation(q.mutation, shape); err != nil {
				fmt.Println(err)
				return
			}
		}
		proof, err := prove.Close(context.Background(), &setup)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(q.protocol, q.mutation, proof.Closed())
	}
	// Output:
	// native  true
	// native drop-sync-2 false
}
