// SPDX-License-Identifier: Apache-2.0

package litmus_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check/litmus"
)

// May a CPU see a flag that was raised after a store to text, and still execute the
// old text?
func Example() {
	test, err := litmus.Parse("old-text", strings.NewReader(`test old-text
site a 0
data f
thread w
store a 1
write f 1
thread c
r = read f
s = exec a
outcome c:r=1 c:s=0
expect none intel
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := test.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		fmt.Println(r.Class, r.Verdict)
	}
	// Output:
	// intel allowed
}
