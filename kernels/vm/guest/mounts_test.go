// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/sandbox"
)

// withMounts does something in a thread that has mounts of its own.
func withMounts(t *testing.T, do func()) {
	t.Helper()
	err := sandbox.Mounts(func() error {
		do()
		return nil
	})
	if err != nil {
		t.Skipf("skipped: mounts of one's own: %v", err)
	}
}

// TestMountsTracing: tracing is mounted, where it belongs, before it is made ready. A user whom the kernel lets write
// nothing there leaves this machine's own as it is.
func TestMountsTracing(t *testing.T) {
	dir := t.TempDir()
	err := os.MkdirAll(filepath.Join(dir, tracing), 0o755)
	for at := dir; err == nil && len(at) > len(os.TempDir()); at = filepath.Dir(at) {
		err = os.Chmod(at, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	withMounts(t, func() {
		if err := errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chroot(dir), syscall.Chdir("/")); err != nil {
			t.Error(err)
			return
		}
		const nobody = 65534
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		err := (&job{Actions: []string{"idle"}}).trace()
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
		if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EPERM) {
			t.Logf("skipped: %v", err)
			return
		}
		if err == nil || err.Error() != "open "+tracing+"tracing_on: permission denied" {
			t.Errorf("%v, want a file that this user may not write", err)
		}
		var at syscall.Statfs_t
		if err := syscall.Statfs(tracing, &at); err != nil || at.Type != 0x74726163 { // TRACEFS_MAGIC
			t.Errorf("%#x, %v, want tracefs", at.Type, err)
		}
	})
}

// TestModulesWait: what a module leaves for later is done before its action is over, also where the kernel refuses it.
func TestModulesWait(t *testing.T) {
	dir := root(t.TempDir())
	dir.write(t, "/a-b.ko", "no module")
	withMounts(t, func() {
		if err := errors.Join(syscall.Unshare(syscall.CLONE_FS), syscall.Chroot(string(dir)),
			syscall.Chdir("/")); err != nil {
			t.Error(err)
			return
		}
		a, err := newAction("module-load:a-b.ko")
		if err != nil {
			t.Error(err)
			return
		}
		for what, do := range map[string]func() error{"load a-b.ko: ": a.on, "unload a_b: ": a.off} {
			var rests atomic.Bool
			worker := filepath.Join(string(dir), "proc/7/comm")
			root("/").write(t, "/proc/7/comm", "kworker/u8:1+events_unbound\n")
			time.AfterFunc(time.Millisecond, func() { // in a thread that has the machine's root
				rests.Store(true)
				if err := os.WriteFile(worker, []byte("kworker/u8:1-events_unbound\n"), 0o600); err != nil {
					t.Error(err)
				}
			})
			if err := do(); err == nil || !strings.HasPrefix(err.Error(), what) {
				t.Errorf("%v, want %s", err, what)
			}
			if !rests.Load() {
				t.Errorf("%sa worker still works", what)
			}
		}
	})
}
