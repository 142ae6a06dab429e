// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What keeps a file from being read or written though nothing is wrong with what it
// holds. After the first four it may go on; ErrBroken says that it may not.
var (
	ErrFull       = errors.New("the disk is full: make room")
	ErrReadOnly   = errors.New("the file system is read-only: mount it for writing")
	ErrPermission = errors.New("its owner or its mode does not let this process write it: change them")
	ErrHandles    = errors.New("no file handles are left: raise the limit (ulimit -n, LimitNOFILE)")
	// ErrBroken is a device that fails, or a file that is not the one that was opened.
	// What a failed sync has left on the disk nobody knows
	// (https://wiki.postgresql.org/wiki/Fsync_Errors): only a new start can tell.
	ErrBroken = errors.New("it cannot be relied on any more: look at the disk, then start the server again")
)

// TroubleError says that a file could not be written or read, which is not damaged.
type TroubleError struct {
	File      string
	Kind, Err error // Kind is one of the above
}

func (e *TroubleError) Error() string {
	return fmt.Sprintf("%s: %v; what it holds is not damaged (%v)", e.File, e.Kind, e.Err)
}

// Unwrap is both.
func (e *TroubleError) Unwrap() []error { return []error{e.Kind, e.Err} }

// Passing tells whether an error is of what surrounds the file, so that the same may
// succeed later.
func Passing(err error) bool {
	var t *TroubleError
	return errors.As(err, &t) && !errors.Is(t.Kind, ErrBroken)
}

// explain says what an error of SQLite or of the system means for a file. One that is
// about neither the file nor what surrounds it is only given the file's name.
func explain(file string, err error) error {
	if explained(err) {
		return err
	}
	if kind := kindOf(file, err); kind != nil {
		return &TroubleError{file, kind, err}
	}
	var lite *sqlite.Error
	if errors.As(err, &lite) {
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
			return &DamagedError{file, err.Error()}
		}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// explained tells whether an error says already what it means.
func explained(err error) bool {
	var foreign *ForeignError
	var locked *LockedError
	return hopeless(err) || errors.As(err, &foreign) || errors.As(err, &locked)
}

// hopeless tells whether an error is of the file, and would be everybody's.
func hopeless(err error) bool {
	var trouble *TroubleError
	var damaged *DamagedError
	return errors.As(err, &trouble) || errors.As(err, &damaged)
}

// unsound is what an error means that came while a file was looked at for the first
// time: what cannot be explained otherwise is its damage.
func (s *Store) unsound(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", s.file, err)
	case kindOf(s.file, err) != nil:
		return explain(s.file, err)
	}
	return &DamagedError{s.file, err.Error()}
}

// kindOf is the kind of trouble that an error is, nil for none. The low byte of a
// code of SQLite is its kind (https://www.sqlite.org/rescode.html).
func kindOf(file string, err error) error {
	if kind := errnoKind(err); kind != nil {
		return kind
	}
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return nil
	}
	switch code := lite.Code(); code & 0xff {
	case sqlite3.SQLITE_FULL:
		return ErrFull
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return surroundings(file)
	case sqlite3.SQLITE_IOERR:
		if errors.Is(surroundings(file), ErrFull) && code != sqlite3.SQLITE_IOERR_FSYNC {
			return ErrFull // of the log's index: SQLITE_IOERR_SHMSIZE
		}
		return ErrBroken
	}
	return nil
}

// errnoKind is the kind of an error of the system.
func errnoKind(err error) error {
	for _, k := range []struct{ errno, kind error }{
		{syscall.ENOSPC, ErrFull}, {syscall.EDQUOT, ErrFull}, {syscall.EROFS, ErrReadOnly}, {syscall.EACCES, ErrPermission},
		{syscall.EPERM, ErrPermission}, {syscall.EMFILE, ErrHandles}, {syscall.ENFILE, ErrHandles}, {syscall.EIO, ErrBroken},
		{syscall.ESTALE, ErrBroken},
	} {
		if errors.Is(err, k.errno) {
			return k.kind
		}
	}
	return nil
}

// surroundings tries what SQLite does not say: why a file cannot be opened for
// writing, as the effective user. The file itself is not opened: closing it would drop SQLite's locks.
func surroundings(file string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.W_OK, unix.AT_EACCESS); err != nil {
		if kind := errnoKind(err); kind != nil {
			return kind
		}
	}
	probe, err := os.CreateTemp(filepath.Dir(file), ".probe-*")
	if err == nil {
		_, err = probe.Write(make([]byte, 1))
		err = errors.Join(err, probe.Close(), os.Remove(probe.Name()))
	}
	if err == nil {
		err = handles()
	}
	if kind := errnoKind(err); kind != nil {
		return kind
	}
	return ErrPermission // of the log or its index, which somebody else has made
}

// handles tries to open as many files as a Store does at most.
func handles() error {
	for range MostFiles {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer f.Close()
	}
	return nil
}

// note remembers how the last transaction went, and explains why it failed.
func (s *Store) note(err error) error {
	if err == nil {
		s.trouble.Store(nil)
		return nil
	}
	err = explain(s.file, err)
	if hopeless(err) {
		s.trouble.Store(&err)
	}
	return err
}

// Trouble is nil while the file can be written, as far as is known: it is what the
// last transaction failed with.
func (s *Store) Trouble() error {
	if err := s.trouble.Load(); err != nil {
		return *err
	}
	return nil
}

// Probe writes something, to see whether that is possible, and looks whether the
// file is still the one that was opened.
func (s *Store) Probe() error {
	if err := s.same(); err != nil {
		return s.note(err)
	}
	return s.change(func(tx *txn) error {
		tx.wrote(0)
		return nil
	})
}

// same looks whether the file's name still leads to it. A server whose directory was
// removed would go on writing into what nobody can open any more.
func (s *Store) same() error {
	now, err := os.Stat(s.file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &TroubleError{s.file, ErrBroken, errors.New("the file or its directory was removed")}
	case err != nil:
		return err
	case !os.SameFile(now, s.opened):
		return &TroubleError{s.file, ErrBroken, errors.New("another file has taken its place")}
	}
	return nil
}

// Check looks whether the file is still the one that was opened, and, after a
// transaction has failed, whether the next one can succeed.
func (s *Store) Check(context.Context) error {
	if s.Trouble() != nil {
		return s.Probe()
	}
	if err := s.same(); err != nil {
		return s.note(err)
	}
	return nil
}

// Fault has every transaction fail with what f returns, unless that is nil: how
// tests fill a disk. nil takes it away.
func (s *Store) Fault(f func() error) { s.fault.Store(&f) }
