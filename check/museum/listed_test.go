// SPDX-License-Identifier: Apache-2.0

package museum

import (
	"strings"
	"testing"

	"github.com/textpoke/textpoke/check/explore"
)

// TestListOfArm: what replaces each other under a running CPU must be of Arm's list, the old
// instruction and the new one (B2.2.5). A breakpoint is of the list, and does not help what
// it covers; standing still does.
func TestListOfArm(t *testing.T) {
	const nop, branch, stp = "disabled", "jumps to other", "bytes 80 07 00 a9"
	const word = "Write word\n Fence"
	for _, c := range []struct {
		from, to, how string
		want          explore.Verdict
	}{
		{nop, branch, word, explore.Safe},
		{branch, "jumps to entry", word, explore.Safe},
		{nop, "calls entry", word, explore.Safe},
		{nop, "calls entry", "update breakpoint 0", explore.Safe},
		{stp, branch, word, explore.Unsafe},
		{nop, stp, word, explore.Unsafe},
		{stp, branch, "update breakpoint 0", explore.Unsafe},
		{stp, branch, "update stop-machine 0", explore.Safe},
	} {
		text := strings.NewReplacer("FROM", c.from, "TO", c.to, "HOW", c.how).Replace(
			"machine:\n arch arm64\n cpus 2\n attached entry\n without literals\ntext:\n FROM\n" +
				"patches:\n site 0, to TO\npatcher:\n Verify\n HOW\n")
		if got := acts(t, text, false); got.Verdict != c.want {
			t.Errorf("%s to %s, %s: %s %v, want %s", c.from, c.to, c.how, got.Verdict, got.Violation, c.want)
		}
	}
}
