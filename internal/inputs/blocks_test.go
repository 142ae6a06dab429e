// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBlocks: keys at the beginnings of lines, what stands below them, and what is refused.
func TestBlocks(t *testing.T) {
	keys := []string{"name", "steps"}
	got, err := Blocks("f", "# for people\n\nname:  a: b \r\nsteps:\n  one # more\n\n\t# not this\n two\nname:", keys)
	want := []Block{{"name", "a: b", 3, nil}, {"steps", "", 4, []Item{{"one # more", 5}, {"two", 8}}}, {"name", "", 9, nil}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"\n  x\nname: a":                        `f:2: "x" is indented, and nothing is above it`,
		"name: a\nstep: b":                      `f:2: "step": not one of name, steps; did you mean steps?`,
		"name":                                  `f:1: "name": not one of name, steps; did you mean name?`,
		"name: \xff":                            "f:1: not UTF-8",
		"name: " + strings.Repeat("x", 995):     "f:1: 1001 bytes in a line: want 1000 at most",
		"name: " + strings.Repeat("x", 994):     "",
		"name: a\n" + strings.Repeat(" ", 2000): "",
	} {
		got := ""
		if _, err := Blocks("f", text, keys); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q: %s, want %s", text, got, want)
		}
	}
}
