// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is one directory and its files: all that the journal asks of the world. Written bytes
// survive a power cut once Handle.Sync has returned, a name once Disk.Sync has.
type Disk interface {
	Create(name string) (Handle, error) // empties one that exists
	Open(name string) (Handle, error)
	Rename(from, to string) error
	Remove(name string) error
	List() ([]string, error)
	Sync() error
	// Lock makes the directory this process's own until Unlock.
	Lock() error
	Unlock() error
	// Same is nil while the name still leads to the file that was opened.
	Same(name string, f Handle) error
}

// Handle is an open file of a Disk.
type Handle interface {
	io.ReaderAt
	io.WriterAt
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// LockName is the file that a server locks, beside the directory: of two directories with
// hard links to the same files it is one.
const LockName = "textpoke.lock"

// directory is a Disk of the operating system.
type directory struct {
	path  string
	locks []*os.File
}

// makeDirectory is a directory, which is made where it is missing, with its names on the disk.
func makeDirectory(path string) (*directory, error) {
	d := &directory{path: path}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || path == "" {
		return d, os.MkdirAll(path, 0o700)
	}
	above, err := makeDirectory(filepath.Dir(path))
	if err == nil {
		err = os.MkdirAll(path, 0o700)
	}
	if err == nil {
		err = above.Sync()
	}
	return d, err
}

func (d *directory) at(name string) string { return filepath.Join(d.path, name) }

type osFile struct{ *os.File }

// Size is how long the file is.
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func openFile(path string, flags int) (Handle, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *directory) Create(name string) (Handle, error) {
	return openFile(d.at(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (d *directory) Open(name string) (Handle, error) { return openFile(d.at(name), os.O_RDWR) }

func (d *directory) Rename(from, to string) error { return os.Rename(d.at(from), d.at(to)) }

func (d *directory) Remove(name string) error { return os.Remove(d.at(name)) }

func (d *directory) List() (names []string, err error) {
	all, err := os.ReadDir(d.path)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names, err
}

func (d *directory) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Lock locks the directory, as programs before this one did, and LockName.
func (d *directory) Lock() error {
	for _, open := range []func() (*os.File, error){
		func() (*os.File, error) { return os.Open(d.path) },
		func() (*os.File, error) { return os.OpenFile(d.at(LockName), os.O_RDWR|os.O_CREATE, 0o600) },
	} {
		f, err := open()
		if err != nil {
			return errors.Join(err, d.Unlock())
		}
		d.locks = append(d.locks, f)
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errors.Join(&LockedError{d.path}, d.Unlock())
		case err != nil:
			return errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), d.Unlock())
		}
	}
	return nil
}

func (d *directory) Unlock() (err error) {
	for _, f := range d.locks {
		err = errors.Join(err, f.Close())
	}
	d.locks = nil
	return err
}

// Same tells whether name still leads to the open file. If the directory was removed, a server
// would go on writing into a file that no program can open any more.
func (d *directory) Same(name string, f Handle) error {
	now, err := os.Stat(d.at(name))
	if errors.Is(err, os.ErrNotExist) {
		return &TroubleError{d.at(name), ErrBroken, errors.New("the file or its directory was removed")}
	}
	if err != nil {
		return err
	}
	opened, err := f.(osFile).Stat()
	if err == nil && !os.SameFile(now, opened) {
		err = &TroubleError{d.at(name), ErrBroken, errors.New("another file has taken its place")}
	}
	return err
}

// MostFiles is how many open files a Store has at most: both locks, the head, the segment that
// is written and the one that it replaces, and a few that are read.
const MostFiles = 12

// Errors that keep a file from being read or written although its contents are sound. The first
// four may pass; ErrBroken says that it cannot.
var (
	ErrFull       = errors.New("the disk is full: make room")
	ErrReadOnly   = errors.New("the file system is read-only: mount it for writing")
	ErrPermission = errors.New("its owner or its mode does not let this process write it: change them")
	ErrHandles    = errors.New("no file handles are left: raise the limit (ulimit -n, LimitNOFILE)")
	// ErrBroken is a device that fails, or a file that is not the one that was opened. After a
	// failed sync the contents of the disk are unknown
	// (https://wiki.postgresql.org/wiki/Fsync_Errors): only a new start can tell.
	ErrBroken = errors.New("it cannot be relied on any more: look at the disk, then start the server again")
)

// TroubleError says that a file could not be written or read, which is not damaged.
type TroubleError struct {
	File      string
	Kind, Err error // Kind is one of the above
}

func (e *TroubleError) Error() string {
	return fmt.Sprintf("%s: %v; its contents are not damaged (%v)", e.File, e.Kind, e.Err)
}

// Unwrap is both.
func (e *TroubleError) Unwrap() []error { return []error{e.Kind, e.Err} }

// Passing tells whether an error is of what surrounds the file, so that the same may
// succeed later.
func Passing(err error) bool {
	var t *TroubleError
	return errors.As(err, &t) && !errors.Is(t.Kind, ErrBroken)
}

// explain says what a system's error means for a directory. Any other error only gets the file's
// name.
func explain(file string, err error) error {
	var foreign *ForeignError
	var locked *LockedError
	if err == nil || hopeless(err) || errors.As(err, &foreign) || errors.As(err, &locked) { // it says already what it means
		return err
	}
	if kind := errnoKind(err); kind != nil {
		return &TroubleError{file, kind, err}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// hopeless tells whether an error is of the file, and would be everybody's.
func hopeless(err error) bool {
	var trouble *TroubleError
	var damaged *DamagedError
	return errors.As(err, &trouble) || errors.As(err, &damaged)
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

// same looks whether the directory is still there.
func (s *Store) same() error { return s.disk.Same(segmentName(s.log.last()), s.log.out) }

// Check looks whether the directory is still the one that was opened, and, after a
// transaction has failed, whether the next one can succeed.
func (s *Store) Check(context.Context) error {
	return s.commit(&job{do: func(tx *txn) error {
		if err := s.same(); err != nil {
			return s.note(err)
		}
		if s.Trouble() != nil {
			tx.add(entry{Forget: &forgotten{}}) // says nothing: whether it can be written is asked
		}
		return nil
	}})
}

// Fault has every transaction fail with what f returns, unless that is nil: how
// tests fill a disk. nil takes it away.
func (s *Store) Fault(f func() error) { s.fault.Store(&f) }

// LockedError refuses a directory that somebody else has open.
type LockedError struct{ File string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: another server has it open; stop that one, or choose another directory", e.File)
}

// DamagedError refuses what is not as it was written.
type DamagedError struct{ File, Why string }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: damaged: %s; put a copy of the whole directory back, or move it away to begin with nothing",
		e.File, e.Why)
}

// ForeignError refuses a directory that is whole and somebody else's.
type ForeignError struct{ File, Why string }

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s: %s; choose another directory, or move the file away to begin with nothing", e.File, e.Why)
}
