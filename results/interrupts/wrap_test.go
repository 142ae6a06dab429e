// SPDX-License-Identifier: Apache-2.0

package interrupts

import "testing"

// TestGrown: a counter of 32 bits that began anew has grown, one that fell a little has not.
func TestGrown(t *testing.T) {
	const all = 1 << 32
	for _, c := range []struct{ before, after, want int64 }{
		{5, 7, 2}, {7, 5, -2}, {all - 1, 0, 1}, {all - 10, 20, 30}, {all / 2, 0, -all / 2}, {all/2 + 1, 0, all/2 - 1},
		{all, 0, -all}, {all + 5, 3, -all - 2}, {0, all - 1, all - 1},
	} {
		if got := grown(c.before, c.after); got != c.want {
			t.Errorf("from %d to %d: %d, want %d", c.before, c.after, got, c.want)
		}
	}
}
