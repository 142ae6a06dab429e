// SPDX-License-Identifier: Apache-2.0

package service

import (
	"syscall"
	"testing"
	"time"
)

// used is the processor time that this process has taken.
func used(t *testing.T) time.Duration {
	t.Helper()
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		t.Fatal(err)
	}
	return time.Duration(now.Utime.Nano() + now.Stime.Nano())
}

// atRest tells whether this process does nothing for a while: its own time counts, and
// not what others do on this machine.
func atRest(t *testing.T) bool {
	t.Helper()
	const window, share = 100 * time.Millisecond, 50
	for range 50 {
		before := used(t)
		time.Sleep(window)
		if used(t)-before < window/share {
			return true
		}
	}
	return false
}

// TestRests: while nothing is patched the machine leaves the cores to others, also when somebody watches.
func TestRests(t *testing.T) {
	s, _ := newWorld(t).start(t)
	watcher := s.Events(0)
	if !atRest(t) {
		t.Error("before the first update: busy")
	}
	do(t, s, enable("a", "fn1"))
	if !atRest(t) {
		t.Error("after an update: busy")
	}
	if len(watcher.Read(nil)) == 0 {
		t.Error("nothing was seen of the update")
	}
}
