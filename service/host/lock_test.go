// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/textpoke/textpoke/kernels/tracefs"
)

// locking counts the locks that are held, and names all that were asked for.
type locking struct {
	tracefs.Files
	asked   []string
	held    int
	refuses error
}

type lock struct{ of *locking }

func (l lock) Close() error {
	l.of.held--
	return nil
}

func (l *locking) Lock(name string) (io.Closer, error) {
	l.asked = append(l.asked, name)
	if l.refuses != nil {
		return nil, l.refuses
	}
	l.held++
	return lock{l}, nil
}

// TestOneLock: the instance is locked once while it is served: not after a start that failed, and once again when
// somebody removed the instance.
func TestOneLock(t *testing.T) {
	w := newWorld(t)
	l := &locking{Files: w.files, refuses: errors.New("another server holds it")}
	w.config.Files = l
	if _, err := Machine(w.config)(nil, zap.NewNop()); err == nil ||
		err.Error() != "this machine's kernel: instance x: another server holds it" {
		t.Error(err)
	}
	l.refuses = nil
	interrupts := w.config.Interrupts
	w.config.Interrupts = filepath.Join(t.TempDir(), "none")
	if _, err := Machine(w.config)(nil, zap.NewNop()); err == nil || l.held != 0 {
		t.Errorf("%v: %d locks are held after a start that failed", err, l.held)
	}
	w.config.Interrupts = interrupts
	m, err := Machine(w.config)(nil, zap.NewNop())
	if err != nil || l.held != 1 {
		t.Fatalf("%v: %d locks", err, l.held)
	}
	if err := m.Agree(t.Context()); err != nil || l.held != 1 {
		t.Errorf("%v: %d locks, and the instance is there", err, l.held)
	}
	if err := w.files.Remove("instances/x"); err != nil {
		t.Fatal(err)
	}
	if err := m.Agree(t.Context()); err != nil || l.held != 1 {
		t.Errorf("%v: %d locks, and the instance was made anew", err, l.held)
	}
	if slices.ContainsFunc(l.asked, func(name string) bool { return name != "instances/x" }) || len(l.asked) != 4 {
		t.Errorf("locked %v", l.asked)
	}
	m.Close()
	if l.held != 0 {
		t.Errorf("%d locks are held after the end", l.held)
	}
}

// unlocking is a lock that is released in some way.
type unlocking struct{ err error }

func (u unlocking) Close() error { return u.err }

// TestReleased: only a lock that cannot be released is told, and not one that has been released already.
func TestReleased(t *testing.T) {
	for i, c := range []struct {
		lock io.Closer
		told int
	}{{nil, 0}, {unlocking{}, 0}, {unlocking{&os.PathError{Op: "close", Path: "x", Err: os.ErrClosed}}, 0},
		{unlocking{errBroken}, 1}} {
		core, seen := observer.New(zap.InfoLevel)
		(&Host{lock: c.lock, log: zap.New(core)}).Close()
		if seen.Len() != c.told {
			t.Errorf("%d: told %d times, want %d", i, seen.Len(), c.told)
		}
	}
}
