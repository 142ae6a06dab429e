// SPDX-License-Identifier: Apache-2.0

package uprobes

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSample: a sample has the sites that its name says, and each can be replaced.
func TestSample(t *testing.T) {
	for spec, want := range map[string][insns]int{
		"nop5": {Nop5: 1}, "3xnop10": {Nop10: 3}, "1000xother": {Other: 1000}, "2xnop1": {Nop1: 2},
	} {
		p, err := Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		if p.Count() != want || p.Sites[0].Crosses {
			t.Errorf("%s: %v, want %v", spec, p.Count(), want)
		}
	}
	for spec, want := range map[string]string{"0xnop5": "want 1 to 1000", "1001xnop5": "want 1 to 1000",
		"3xnop6": "no such file", "nop5x": "no such file", "-1xnop5": "no such file"} {
		if _, err := Open(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

// TestSampleRuns: the processor takes a sample through its sites and back for each byte.
func TestSampleRuns(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("skipped: the program is for x86-64 and Linux")
	}
	for _, spec := range []string{"1000xnop5", "nop10", "2xnop1", "3xother"} {
		text, err := (&Program{File: spec}).Text()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "sample")
		if err := os.WriteFile(file, text, 0o700); err != nil {
			t.Fatal(err)
		}
		run := exec.Command(file)
		run.Stdin = strings.NewReader("ab\x00c")
		out, err := run.Output()
		if err != nil || string(out) != "ab\x00c" {
			t.Errorf("%s: %q, %v", spec, out, err)
		}
	}
}
