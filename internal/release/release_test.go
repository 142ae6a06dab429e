// SPDX-License-Identifier: Apache-2.0

package release

import "testing"

// TestOf: two or three numbers are read, whatever follows them, and fewer are refused in words.
func TestOf(t *testing.T) {
	for name, want := range map[string]Numbers{
		"7.3": {7, 3}, "7.3-rc7": {7, 3}, "7.1.9": {7, 1, 9}, "6.12.48+deb13-amd64": {6, 12, 48}, "6.12.20261129": {6, 12, 20261129},
		"": {}, "7": {}, "new": {}, "6.-1": {}, "6.12.1073741824": {},
	} {
		got, err := Of(name)
		if got != want || (err != nil) != (want == Numbers{}) {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
	older := []Numbers{{}, {6, 15, Last}, {6, 16}, {6, 16, 1}, {7}}
	for i, a := range older {
		for k, b := range older {
			if a.Before(b) != (i < k) {
				t.Errorf("%v before %v: %v", a, b, a.Before(b))
			}
		}
	}
}
