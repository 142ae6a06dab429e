// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// calm fails unless an error is of that kind and says neither damage nor to move
// anything away: who follows such advice destroys what is whole.
func calm(t *testing.T, err, kind error) {
	t.Helper()
	var damaged *DamagedError
	if !errors.Is(err, kind) || errors.As(err, &damaged) || !Passing(err) {
		t.Errorf("%v, want %v", err, kind)
	}
	if text := fmt.Sprint(err); strings.Contains(text, "move") || !strings.Contains(text, "not damaged") {
		t.Errorf("%q: bad advice", text)
	}
}

// TestFull: while there is no room nothing is accepted, and it goes on once there is.
func TestFull(t *testing.T) {
	s := openIn(t, t.TempDir())
	u := accept(t, s, order("a", "", 1))
	s.Fault(func() error { return syscall.ENOSPC })
	_, err := s.Accept(order("b", "", 2), func(Update) { t.Error("entered") })
	calm(t, err, ErrFull)
	calm(t, s.Trouble(), ErrFull)
	calm(t, s.Check(t.Context()), ErrFull)
	s.Fault(nil)
	if err := s.Check(t.Context()); err != nil || s.Trouble() != nil {
		t.Errorf("%v, %v, and there is room", err, s.Trouble())
	}
	accept(t, s, order("b", "", 2))
	u.State = Live
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Error(err)
	}
}

// TestErrno: what the system says, in words.
func TestErrno(t *testing.T) {
	for _, tt := range []struct{ errno, kind error }{
		{syscall.ENOSPC, ErrFull}, {syscall.EROFS, ErrReadOnly}, {syscall.EACCES, ErrPermission}, {syscall.EMFILE, ErrHandles},
	} {
		calm(t, explain("file", &os.PathError{Op: "write", Path: "file", Err: tt.errno}), tt.kind)
	}
	if err := explain("file", syscall.EIO); !errors.Is(err, ErrBroken) || Passing(err) {
		t.Errorf("%v, want ErrBroken", err)
	}
}

// closed leaves a journal in a directory, with one update in it.
func closed(t *testing.T, dir string) {
	t.Helper()
	s := openIn(t, dir)
	accept(t, s, order("a", "", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoHandles: a process that may open no more files does not call its file
// damaged.
func TestNoHandles(t *testing.T) {
	dir := t.TempDir()
	closed(t, dir)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("/proc does not say how many files are open")
	}
	kinds := 0
	for more := range uint64(MostFiles) { // each file that it opens is once the first that it may not
		few := was
		few.Cur = uint64(len(open)) + more
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), dir, someone)
		if back := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was); back != nil {
			t.Fatal(back)
		}
		if err != nil {
			calm(t, err, ErrHandles)
			kinds++
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if kinds < 2 {
		t.Errorf("refused %d times: the limits are too high", kinds)
	}
}

// TestRemoved: a server whose file is gone notices, and does not go on as if it were
// kept.
func TestRemoved(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"the directory": os.RemoveAll,
		"the file":      func(dir string) error { return os.Remove(filepath.Join(dir, segmentName(1))) },
		"another file": func(dir string) error {
			file := filepath.Join(dir, segmentName(1))
			return errors.Join(os.WriteFile(file+"2", []byte("else"), 0o600), os.Rename(file+"2", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s := openIn(t, dir)
			if err := s.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Accept(order("a", "", 1), func(Update) { t.Error("acknowledged") }); !errors.Is(err, ErrBroken) {
				t.Errorf("%v, want ErrBroken", err)
			}
			if err := s.Check(t.Context()); !errors.Is(err, ErrBroken) || s.Trouble() == nil {
				t.Errorf("%v, %v, want ErrBroken", err, s.Trouble())
			}
			if err := s.Close(); !errors.Is(err, ErrBroken) {
				t.Errorf("closed: %v, want ErrBroken", err)
			}
		})
	}
}
