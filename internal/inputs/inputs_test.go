// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	if got := Place("a"); got != "a" {
		t.Errorf("a is at %q", got)
	}
	back := Elsewhere(map[string]string{"a": "/tmp/b"})
	if a, c := Place("a"), Place("c"); a != "/tmp/b" || c != "" {
		t.Errorf("a is at %q, c at %q", a, c)
	}
	back()
	if got := Place("c"); got != "c" {
		t.Errorf("c is at %q", got)
	}
}

// TestClip: a value in an error has so many bytes at most, and no letter is cut in two.
func TestClip(t *testing.T) {
	for s, want := range map[string]string{
		strings.Repeat("x", 48):        strings.Repeat("x", 48),
		strings.Repeat("x", 49):        strings.Repeat("x", 48) + "...",
		strings.Repeat("x", 47) + "éé": strings.Repeat("x", 47) + "...",
		strings.Repeat("\x80", 49):     "...",
	} {
		if got := Clip(s, 48); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
