// SPDX-License-Identifier: Apache-2.0

// Package files writes the files that a request names, without harm to a file that has the name already.
//
// A regular file is replaced at the end, complete or not at all, and keeps its mode and its owner. A link is followed.
// Devices, pipes and sockets are written to directly.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/textpoke/textpoke/internal/inputs"
)

// File is a file that is being written. It gets its name at Commit; Abort throws it away. Bytes for a device or a
// pipe go there at once.
type File struct {
	name    string
	pending *renameio.PendingFile // nil where the file is written through
	through *os.File
}

// Create begins a file of a mode, where none of the name has one.
//
//	f, err := files.Create("runs.csv", 0o666)
//	if err != nil { return err }
//	defer f.Abort() // does nothing after Commit
//	...
//	return f.Commit()
func Create(name string, mode fs.FileMode) (*File, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return nil, fmt.Errorf("%s is a directory", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := inputs.At(name, os.O_WRONLY, 0)
		return &File{name: name, through: f}, err
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	target, err := resolve(name)
	if err != nil {
		return nil, err
	}
	p, err := renameio.NewPendingFile(target, renameio.WithTempDir(filepath.Dir(target)), renameio.WithPermissions(mode),
		renameio.WithExistingPermissions())
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", name, Cause(err))
	}
	if info != nil {
		if owner, is := info.Sys().(*syscall.Stat_t); is {
			_ = p.Chown(int(owner.Uid), int(owner.Gid)) // only root may give a file away
		}
	}
	return &File{name: name, pending: p}, nil
}

// resolve follows links, also the last one where it leads to nothing yet.
func resolve(name string) (string, error) {
	const most = 40 // MAXSYMLINKS, include/linux/namei.h (Linux 6.12)
	for range most {
		to, err := os.Readlink(name)
		if err != nil {
			return name, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(name), to)
		}
		name = to
	}
	return "", fmt.Errorf("%s: too many links", name)
}

// Cause drops the name of a temporary file from an error whose text says already which file or directory it is about.
func Cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// Write appends to the file.
func (f *File) Write(b []byte) (int, error) {
	if f.through != nil {
		return f.through.Write(b)
	}
	return f.pending.Write(b)
}

// Commit syncs the file to disk and gives it its name. If that fails, the temporary file is removed.
func (f *File) Commit() error {
	err := f.close()
	if err != nil {
		f.Abort()
		return fmt.Errorf("finish %s: %w", f.name, err)
	}
	return nil
}

func (f *File) close() error {
	if f.through != nil {
		return f.through.Close()
	}
	return f.pending.CloseAtomicallyReplace()
}

// Abort removes the temporary file. After Commit, or a second time, it does nothing.
func (f *File) Abort() {
	if f.through != nil {
		_ = f.through.Close() // what has gone cannot be called back
		return
	}
	_ = f.pending.Cleanup() // a file that cannot be removed keeps its hidden temporary name
}

// Write creates the file, lets fill write it, and commits it. When fill fails or panics, a regular file of that name
// stays as it was.
func Write(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := Create(name, mode)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := fill(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return f.Commit()
}

// Same tells whether two names are of one file, or of one directory.
func Same(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y), err
}

// Copy writes what is in one file into another, as Write does.
func Copy(from, to string, mode fs.FileMode) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return Write(to, mode, From(f))
}

// From fills a file with what a reader reads.
func From(r io.Reader) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	}
}
