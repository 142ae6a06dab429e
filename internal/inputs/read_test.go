// SPDX-License-Identifier: Apache-2.0

package inputs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRead: what is longer than its limit is refused, also where it has no end.
func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "four")
	if err := os.WriteFile(file, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := Read(file, 4); err != nil || string(b) != "four" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{file, "/dev/zero"} {
		if _, err := Read(name, 3); err == nil || !strings.Contains(err.Error(), name+": larger than 3 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUntil: a pipe without a writer, and one whose writer says nothing, are waited for until ctx ends.
func TestUntil(t *testing.T) {
	defer Until(context.Background())
	for _, written := range []bool{false, true} {
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		if written {
			w, err := os.OpenFile(pipe, os.O_RDWR, 0) // which opens at once, and says nothing
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		Until(ctx)
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := Read(pipe, 10); !errors.Is(err, context.Canceled) {
			t.Errorf("with a writer: %v: %v", written, err)
		}
	}
}
