// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
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
