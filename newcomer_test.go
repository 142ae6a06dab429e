// SPDX-License-Identifier: Apache-2.0

package textpoke_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNewcomersProgram runs the program of docs/from-go.md as it stands.
func TestNewcomersProgram(t *testing.T) {
	b, err := os.ReadFile("docs/from-go.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(b), "```go\n")
	program, _, ended := strings.Cut(rest, "```\n")
	if !found || !ended {
		t.Fatal("docs/from-go.md has no program")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if want := regexp.MustCompile(`^12 rounds, \d+ traps\n$`); err != nil || !want.Match(out) {
		t.Errorf("%v, prints %q, want %s", err, out, want)
	}
	if lines := strings.Count(program[strings.Index(program, "func main"):], "\n"); lines > 30 {
		t.Errorf("the newcomer's program has %d lines", lines)
	}
}
