// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestVersion(t *testing.T) {
	if line := done(t, "--version"); line != built.Line("textpoke") {
		t.Errorf("--version: %q", line)
	}
}
