// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestEightQuestions types the commands of the README's eight questions on a screen of 80
// columns, as somebody does who has read nothing else: each is answered in its first lines,
// nothing is wider than the screen, and all take less than ten minutes. The pages that they
// write are looked at, at 390 pixels too, by check/lessons.
func TestEightQuestions(t *testing.T) {
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(b), "\n## Eight questions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if n := strings.Count(section, "\n**"); n != 8 {
		t.Fatalf("%d questions, want 8", n)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(root+"/results", dir+"/results"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("COLUMNS", "80")
	begun, answered := time.Now(), 0
	for _, c := range typed(section) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.line)
		cmd.Dir = dir
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() > exitNo {
			t.Errorf("%s: %v", c.line, err)
		}
		for line := range strings.Lines(string(out)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("%s: %d characters: %s", c.line, n, line)
			}
		}
		if len(c.output) > 0 {
			answered++
			compareFirst(t, c, string(out))
		}
	}
	if answered != 7 {
		t.Errorf("%d commands show an answer, want 7", answered)
	}
	for _, page := range []string{"second.html", "lessons.html"} {
		if b, err := os.ReadFile(filepath.Join(dir, page)); err != nil || !strings.HasPrefix(string(b), "<!doctype html>") {
			t.Errorf("%s is no page: %v", page, err)
		}
	}
	if took := time.Since(begun); took > 10*time.Minute {
		t.Errorf("all took %v", took)
	}
}

// compareFirst compares the first lines, wherever a screen breaks them. Where the document
// begins with a line "...", they may stand further down.
func compareFirst(t *testing.T, c command, out string) {
	t.Helper()
	shown := c.output
	below := shown[0] == "..."
	if below {
		shown = shown[1:]
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") + " " }
	want, got := "", words(out)
	for _, line := range shown {
		if line == "..." {
			break
		}
		want += line + "\n"
	}
	if want = words(want); !below && !strings.HasPrefix(got, want) || !strings.Contains(got, want) {
		t.Errorf("%s: prints\n%s\nand the document has\n%s", c.line, out, want)
	}
}
