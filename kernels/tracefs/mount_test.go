// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLockedDown: the mode in brackets is the one that is chosen, and confidentiality alone closes tracefs.
func TestLockedDown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lockdown")
	if lockedDown(file) {
		t.Error("a kernel without lockdown is locked down")
	}
	for text, want := range map[string]bool{"[none] integrity confidentiality\n": false, "none [integrity] confidentiality\n": false,
		"none integrity [confidentiality]\n": true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lockedDown(file); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
