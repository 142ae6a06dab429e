// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// TestNotMine: a file that somebody else owns is not damaged.
func TestNotMine(t *testing.T) {
	dir := t.TempDir()
	closed(t, dir)
	for _, name := range []string{dir, logOf(t, dir)} {
		if err := os.Chmod(name, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 { // whom no mode stops
		asNobody(t)
	}
	_, err := Open(t.Context(), dir, someone)
	calm(t, err, ErrPermission)
}

// asNobody lets this goroutine's thread use files as the user nobody does
// (setfsuid(2)), until the test ends.
func asNobody(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	set := func(id uintptr) {
		for _, call := range []uintptr{syscall.SYS_SETFSGID, syscall.SYS_SETFSUID} {
			_, _, _ = syscall.RawSyscall(call, id, 0, 0) // it never fails, and says so nowhere
		}
	}
	set(65534)
	t.Cleanup(func() {
		set(0)
		runtime.UnlockOSThread()
	})
}
