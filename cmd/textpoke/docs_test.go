package main

import (
	"os"
	"strings"
	"testing"
)

// TestInterruptsDoc carries the commands of docs/interrupts.md out and compares
// what they print with what stands there; "..." ends what is shown.
func TestInterruptsDoc(t *testing.T) {
	b, err := os.ReadFile("../../docs/interrupts.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```\n$ textpoke ")[1:]
	if len(blocks) < 5 {
		t.Fatalf("%d commands", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "\n```\n")
		line, want, _ := strings.Cut(block, "\n")
		got := done(t, strings.Fields(line)...)
		var lines []string
		for l := range strings.SplitSeq(strings.TrimRight(got, "\n"), "\n") {
			lines = append(lines, strings.TrimRight(l, " "))
		}
		got = strings.Join(lines, "\n")
		shown, cut := strings.CutSuffix(want, "...")
		if got != want && !(cut && strings.HasPrefix(got, shown)) {
			t.Errorf("textpoke %s prints\n%s\nand the document has\n%s", line, got, want)
		}
	}
}
