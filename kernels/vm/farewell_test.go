// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFarewell: a machine whose guest is done, and that does not switch itself off, is switched off.
func TestFarewell(t *testing.T) {
	defer func(d time.Duration) { farewell = d }(farewell)
	farewell = time.Millisecond
	dir := t.TempDir()
	done := `{"Done":true}`
	qemu := filepath.Join(dir, "qemu")
	if err := os.WriteFile(qemu, fmt.Appendf(nil, "#!/bin/sh\necho '@vm %08x %s'\nexec sleep 1000\n",
		crc32.ChecksumIEEE([]byte(done)), done), 0o755); err != nil {
		t.Fatal(err)
	}
	c := Config{Image: "image", Progress: func(string) {}}
	told, err := c.boot(t.Context(), &emulator{QEMU: qemu}, "kernel", filepath.Join(dir, "disk"))
	if err != nil || !told.Done {
		t.Errorf("%+v, %v", told, err)
	}
}

// TestCountedLine: a kernel whose interrupts are counted gets words that one whose steps are recorded does not: a machine
// that changes its clock is stopped meanwhile.
func TestCountedLine(t *testing.T) {
	for _, debugged := range []bool{false, true} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir) // what the console said is kept where a boot fails
		qemu, asked := filepath.Join(dir, "qemu"), filepath.Join(dir, "asked")
		if err := os.WriteFile(qemu, fmt.Appendf(nil, "#!/bin/sh\necho \"$*\" > %s\n", asked), 0o755); err != nil {
			t.Fatal(err)
		}
		c := Config{Image: "image", Progress: func(string) {}}
		if debugged {
			c.Debug = func(context.Context, string, func() error) error { return nil }
		}
		_, _ = c.boot(t.Context(), &emulator{QEMU: qemu, Line: []string{"console=c"}, Counted: "tsc=reliable"}, "kernel",
			filepath.Join(dir, "disk"))
		line, err := os.ReadFile(asked)
		if counted := strings.HasSuffix(strings.TrimSpace(string(line)), "console=c tsc=reliable"); err != nil || counted == debugged ||
			strings.Contains(string(line), "-gdb") != debugged {
			t.Errorf("debugged %v: %s, %v", debugged, line, err)
		}
	}
}
