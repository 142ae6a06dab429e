// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s holds %q, want %q: %v", path, got, want, err)
	}
}

// TestKeeps: a file keeps its mode, a link stays one, also to a file that is not there yet, and what failed leaves all
// as it was.
func TestKeeps(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.WriteFile(at("private"), []byte("old"), 0o600), os.Chmod(at("private"), 0o600),
		os.Symlink("private", at("link")), os.Symlink("nothing", at("dangling"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	failed := errors.New("failed")
	if err := files.Write(at("link"), 0o666, func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	holds(t, at("private"), "old")
	for _, name := range []string{"link", "dangling", "fresh"} {
		if err := files.Write(at(name), 0o666, text("new")); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"private", "nothing", "fresh"} {
		holds(t, at(name), "new")
	}
	for name, want := range map[string]os.FileMode{"private": 0o600, "link": 0o777 | os.ModeSymlink,
		"dangling": 0o777 | os.ModeSymlink} {
		if info, err := os.Lstat(at(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("%v, %v", left, err)
	}
	if err := files.Write(dir, 0o666, text("x")); err == nil {
		t.Error("a directory was written")
	}
}

// TestThrough: devices and pipes are written to and stay what they are, and a full one is an error.
func TestThrough(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		got, _ := os.ReadFile(pipe)
		read <- string(got)
	}()
	if err := files.Write(pipe, 0o666, text("through")); err != nil {
		t.Error(err)
	}
	if got := <-read; got != "through" {
		t.Errorf("%q came through", got)
	}
	if err := files.Write(os.DevNull, 0o666, text("gone")); err != nil {
		t.Error(err)
	}
	if err := files.Write("/dev/full", 0o666, text("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %v", err, syscall.ENOSPC)
	}
	for name, mode := range map[string]os.FileMode{pipe: os.ModeNamedPipe, os.DevNull: os.ModeDevice, "/dev/full": os.ModeDevice} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&mode == 0 {
			t.Errorf("%s is no longer what it was: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestNoReader: a pipe without a reader is waited for until the process is told to end.
func TestNoReader(t *testing.T) {
	defer inputs.Until(context.Background())
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inputs.Until(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := files.Write(pipe, 0o666, text("x")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestOwner: root gives a file back to whom it was of.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may give a file away")
	}
	path := filepath.Join(t.TempDir(), "other")
	if err := errors.Join(os.WriteFile(path, nil, 0o640), os.Chown(path, 12, 34)); err != nil {
		t.Fatal(err)
	}
	if err := files.Write(path, 0o666, text("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 12 || s.Gid != 34 || info.Mode() != 0o640 {
		t.Errorf("%d, %d, %v", s.Uid, s.Gid, info.Mode())
	}
}
