// SPDX-License-Identifier: Apache-2.0

package journal

import (
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
