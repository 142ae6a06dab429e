// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"strings"
	"testing"
)

// TestErrata: ftrace came to batches with 5.6 ("perf changes for v5.6", 2020-01-28);
// 5.5 still had its own three rounds for everything.
func TestErrata(t *testing.T) {
	for name, want := range map[string]string{
		"breakpoint": "Linux 5.6 to 6.15", "breakpoint-global": "Linux 3.5 to 5.5", "breakpoint-lazy": "v8 and v9 do " +
			"otherwise",
	} {
		if p := shipped()[name]; !strings.Contains(p.Source, want) {
			t.Errorf("%s: %q does not say %q", name, p.Source, want)
		}
	}
}
