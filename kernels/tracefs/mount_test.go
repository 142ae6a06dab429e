// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestLockedDown: the mode in brackets is the one that is chosen, and confidentiality alone closes tracefs.
func TestLockedDown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lockdown")
	if lockedDown(file) {
		t.Error("a kernel without lockdown is locked down")
	}
	for text, want := range map[string]bool{"[none] integrity confidentiality\n": false, "none [integrity] confidentiality\n": false,
		"none integrity [confidentiality]\n": true} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := lockedDown(file); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestMount: the first mount that is there is taken; without one both places are named.
func TestMount(t *testing.T) {
	dir := t.TempDir()
	defer func(kept []string) { mounts = kept }(mounts)
	mounts = []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	want := "no tracefs at " + mounts[0] + " or " + mounts[1] + ": root can mount it (mount -t tracefs nodev " + mounts[0] +
		"), unless the kernel has none or is locked down"
	if _, err := Mount(); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, place := range []string{mounts[1], mounts[0]} {
		if err := os.MkdirAll(place, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place, tracersFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Mount(); got != place || err != nil {
			t.Errorf("%s, %v; want %s", got, err, place)
		}
	}
}

// TestRefusedMount: a mount that may not be read is told from one that is not there.
func TestRefusedMount(t *testing.T) {
	denied := &fs.PathError{Op: "open", Path: "/t/x", Err: syscall.EACCES}
	for _, c := range []struct {
		err    error
		locked bool
		want   string
	}{
		{denied, false, "tracefs at /t: no permission: be root, or of the group that owns the mount (mount -o " +
			"remount,gid=GROUP,mode=770 /t)"},
		{denied, true, "tracefs at /t: the kernel is locked down for confidentiality, and refuses it to all users " +
			"(kernel_lockdown(7))"},
		{fs.ErrNotExist, true, "<nil>"},
		{fs.ErrNotExist, false, "<nil>"},
	} {
		if err := refused("/t", c.err, c.locked); fmt.Sprint(err) != c.want {
			t.Errorf("%v, %v: %v, want %s", c.err, c.locked, err, c.want)
		}
	}
}

// TestAt: what is done with a directory's files is done with those of a kernel.
func TestAt(t *testing.T) {
	dir := t.TempDir()
	files := At(dir)
	for _, want := range []bool{true, false} {
		if made, err := files.Mkdir("x"); made != want || err != nil {
			t.Errorf("made: %v, %v; want %v", made, err, want)
		}
	}
	if err := files.Write("x/filter", "1\n", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x", "filter"), []byte("12345\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text  string
		trunc bool
		want  string
	}{{"ab", false, "ab345\n"}, {"cd", true, "cd"}, {"", true, ""}} {
		if err := files.Write("x/filter", step.text, step.trunc); err != nil {
			t.Fatal(err)
		}
		if b, err := files.Read("x/filter"); err != nil || string(b) != step.want {
			t.Errorf("%q: %q, %v; want %q", step.text, b, err, step.want)
		}
	}
	if names, err := files.List("x"); err != nil || !slices.Equal(names, []string{"filter"}) {
		t.Errorf("%v, %v", names, err)
	}
	lock, err := files.Lock("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Lock("x"); err == nil || err.Error() != "another server holds it" {
		t.Errorf("locked twice: %v", err)
	}
	lock.Close()
	if lock, err = files.Lock("x"); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if _, err := files.Lock("y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if err := files.Remove("x/filter"); err != nil {
		t.Error(err)
	}
}

// TestPipe: a pipe without anything in it says so, and does not wait.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "trace_pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := At(dir).Open("trace_pipe")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, err := r.Read(b); n != 0 || !errors.Is(err, ErrNothing) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := w.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(b); string(b[:n]) != "abc" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
	}
	w.Close()
	if n, err := r.Read(b); n != 0 || !errors.Is(err, ErrNothing) {
		t.Errorf("nobody writes: %d, %v", n, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n, err := r.Read(b); n > 0 || err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("closed: %d, %v", n, err)
	}
	if _, err := At(dir).Open("none"); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "open "+dir) {
		t.Errorf("%v", err)
	}
}

// TestFunctionNames: as the kernel's own lists have them.
func TestFunctionNames(t *testing.T) {
	for want, f := range map[string]Function{"a": {"a", "", 3}, "a [m]": {"a", "m", 0}} {
		if f.String() != want {
			t.Errorf("%s, want %s", f, want)
		}
	}
	if i, _, _ := opened(t, kernel()); i.Name() != "x" {
		t.Errorf("the instance is %q", i.Name())
	}
}
