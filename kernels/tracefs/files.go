// SPDX-License-Identifier: Apache-2.0

package tracefs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Files are the files of a tracefs. Names are below its mount, such as
// instances/textpoke/current_tracer.
type Files interface {
	Read(name string) ([]byte, error)
	// List names the files and folders in a folder.
	List(name string) ([]string, error)
	// Write opens a file, writes and closes it. It empties the file first only where trunc
	// says so: a filter keeps its functions otherwise, and gets those that are written.
	Write(name, text string, trunc bool) error
	// Open opens a file whose reader gets ErrNothing while there is nothing to read.
	Open(name string) (io.ReadCloser, error)
	// Mkdir makes a folder, unless it is there.
	Mkdir(name string) (made bool, err error)
	Remove(name string) error
	// Lock keeps a directory from others that lock it, until it is closed.
	Lock(name string) (io.Closer, error)
}

// ErrNothing is a pipe in which nothing has come yet.
var ErrNothing = errors.New("nothing to read yet")

// mounts are where a tracefs is found (Documentation/trace/ftrace.rst).
var mounts = []string{"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}

// lockedDown tells whether the mode that is chosen, which stands in brackets, closes tracefs (LOCKDOWN_TRACEFS,
// include/linux/security.h).
func lockedDown(file string) bool {
	b, err := os.ReadFile(file)
	return err == nil && strings.Contains(string(b), "[confidentiality]")
}

// Mount finds this machine's tracefs. Its error says why there is none.
func Mount() (dir string, err error) {
	for _, dir := range mounts {
		f, err := os.Open(filepath.Join(dir, tracersFile))
		if err == nil {
			return dir, f.Close()
		}
		if err := refused(dir, err, lockedDown("/sys/kernel/security/lockdown")); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("no tracefs at %s: root can mount it (mount -t tracefs nodev %s), unless the kernel has none "+
		"or is locked down", strings.Join(mounts, " or "), mounts[0])
}

// refused says who may open a tracefs that is there; nil where it is not.
func refused(dir string, err error, locked bool) error {
	switch {
	case !errors.Is(err, os.ErrPermission):
		return nil
	case locked:
		return fmt.Errorf("tracefs at %s: the kernel is locked down for confidentiality, and refuses it to all users "+
			"(kernel_lockdown(7))", dir)
	}
	return fmt.Errorf("tracefs at %s: no permission: be root, or of the group that owns the mount "+
		"(mount -o remount,gid=GROUP,mode=770 %s)", dir, dir)
}

// At is the tracefs that is mounted on a directory.
func At(dir string) Files { return mount(dir) }

type mount string

func (m mount) path(name string) string { return filepath.Join(string(m), name) }

func (m mount) Read(name string) ([]byte, error) { return os.ReadFile(m.path(name)) }

func (m mount) List(name string) (names []string, err error) {
	entries, err := os.ReadDir(m.path(name))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (m mount) Write(name, text string, trunc bool) error {
	flag := os.O_WRONLY
	if trunc {
		flag |= os.O_TRUNC
	}
	f, err := os.OpenFile(m.path(name), flag, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close()) // the kernel may refuse at either
}

// Open does not use os.File: a poll of trace_pipe waits until half of the buffer is full (buffer_percent), and a read
// that waits is not ended by closing.
func (m mount) Open(name string) (io.ReadCloser, error) {
	fd, err := unix.Open(m.path(name), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", m.path(name), err)
	}
	return pipe(fd), nil
}

type pipe int

func (p pipe) Read(b []byte) (int, error) {
	n, err := unix.Read(int(p), b)
	switch {
	case n > 0:
		return n, nil
	case err == nil || errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return 0, ErrNothing
	}
	return 0, err
}

func (p pipe) Close() error { return unix.Close(int(p)) }

func (m mount) Mkdir(name string) (made bool, err error) {
	err = os.Mkdir(m.path(name), 0o700)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func (m mount) Remove(name string) error { return os.Remove(m.path(name)) }

func (m mount) Lock(name string) (io.Closer, error) {
	f, err := os.Open(m.path(name))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.New("another server holds it")
		}
		return nil, err
	}
	return f, nil
}
