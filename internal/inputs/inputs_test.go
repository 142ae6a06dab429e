// SPDX-License-Identifier: Apache-2.0

package inputs

import "testing"

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
