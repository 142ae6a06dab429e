// SPDX-License-Identifier: Apache-2.0

package cpus_test

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
)

// What a CPU does at a site and in its breakpoint handler is a short program.
func ExampleNativePath() {
	for _, name := range []string{"x86_64", "arm64"} {
		arch, err := cpus.ParseArch(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name)
		fmt.Println(cpus.NativePath(arch.Traits(), arch.Traits().FetchLen, false))
	}
	// Output:
	// x86_64
	// site: fetch site; call
	// handler: take reference; look up; give back; sync; act
	// miss: look again; sync; go back
	// arm64
	// site: fetch site; load literal; call
	// handler: take reference; look up; give back; sync; act
	// miss: look again; sync; go back
}
