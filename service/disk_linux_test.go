// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// tiny is a directory on a file system of its own with little room; grow gives it more.
func tiny(t *testing.T) (dir string, grow func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skipf("no file system of little room can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func() {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk fills a real disk: whoever asks is told why, what was accepted is kept, and once
// there is room everything goes on, without a restart and after one.
func TestFullDisk(t *testing.T) {
	dir, grow := tiny(t)
	w := newWorld(t)
	w.dir = dir
	w.Retry = func() <-chan time.Time { return time.After(10 * time.Millisecond) }
	s, kill := w.start(t)
	var accepted []int64
	var full error
	for full == nil {
		i := len(accepted)
		if i == 10_000 {
			t.Fatal("the disk is not full yet")
		}
		var u Update
		u, full = s.Submit(t.Context(), enable(fmt.Sprint("c", i), fmt.Sprint("fn", i%100)))
		if errors.Is(full, ErrQueueFull) { // those that were accepted cannot be answered, perhaps because the disk is full
			full = s.Ready()
			time.Sleep(time.Millisecond)
			continue
		}
		if full == nil {
			accepted = append(accepted, u.ID)
		}
	}
	if !errors.Is(full, journal.ErrFull) || !journal.Passing(full) {
		t.Errorf("%v, want a full disk", full)
	}
	grow() // until then the journal may find room for a little, and be ready, from time to time
	if err := s.Look(t.Context()); err != nil {
		t.Errorf("there is room: %v", err)
	}
	var users []int
	look := func() {
		t.Helper()
		for _, id := range accepted {
			if u, err := s.Wait(t.Context(), id); err != nil || u.State != journal.Live {
				t.Errorf("%+v, %v", u, err)
			}
		}
		users = append(users, len(enabled(t, s)))
		if err := s.Ready(); err != nil {
			t.Error(err)
		}
	}
	look()
	kill()
	s, _ = w.start(t)
	look()
	if u := do(t, s, enable("later", "fn1")); u.State != journal.Live {
		t.Errorf("%+v", u)
	}
	if want := min(len(accepted), 100); !slices.Equal(users, []int{want, want}) {
		t.Errorf("%v records are enabled before and after a restart, want %d", users, want)
	}
	t.Logf("%d updates were accepted before the disk was full: %v", len(accepted), full)
}
