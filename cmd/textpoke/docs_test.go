// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
)

// TestDocs carries out the commands that documents show with what they print, and
// compares; "..." ends what is shown. Excerpts that begin with "..." are left out:
// what they are of differs from run to run, or is too long. An answer may be no.
func TestDocs(t *testing.T) {
	for file, least := range map[string]int{"README.md": 3, "docs/interrupts.md": 5, "docs/fetch-models.md": 1} {
		b, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		shown := 0
		for _, block := range strings.Split(string(b), "```\n$ textpoke ")[1:] {
			block, _, _ = strings.Cut(block, "\n```\n")
			line, want, _ := strings.Cut(block, "\n")
			if strings.HasPrefix(want, "...") || want == "" || strings.HasPrefix(want, "```") {
				continue
			}
			shown++
			r := textpoke(t, strings.Fields(line)...)
			if r.code != exitDone && r.code != exitNo || r.err != "" {
				t.Fatalf("%s: textpoke %s: exit code %d, stderr: %s", file, line, r.code, r.err)
			}
			got := trimmed(r.out)
			start, cut := strings.CutSuffix(want, "...")
			if got != want && !(cut && strings.HasPrefix(got, start)) {
				t.Errorf("%s: textpoke %s prints\n%s\nand the document has\n%s", file, line, got, want)
			}
		}
		if shown < least {
			t.Errorf("%s shows %d commands with what they print, want %d", file, shown, least)
		}
	}
}

// trimmed is text without spaces at the ends of lines.
func trimmed(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
