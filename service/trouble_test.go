// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// fill has every transaction fail with an error of the system.
func fill(s *Service, errno error) { s.store.Fault(func() error { return errno }) }

// TestReadyMeansReady: while the disk is full nothing is accepted, and that is what
// Ready says; once there is room it goes on by itself.
func TestReadyMeansReady(t *testing.T) {
	s, _ := newWorld(t).start(t)
	do(t, s, enable("a", "fn1"))
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
	fill(s, syscall.ENOSPC)
	for range 2 {
		if _, err := s.Submit(t.Context(), enable("a", "fn2")); !errors.Is(err, journal.ErrFull) {
			t.Errorf("%v, want ErrFull", err)
		}
		if err := s.Look(t.Context()); !errors.Is(err, journal.ErrFull) || !errors.Is(s.Ready(), journal.ErrFull) {
			t.Errorf("%v, %v, want ErrFull", err, s.Ready())
		}
	}
	if s.Stats().Ready {
		t.Error("the gauge says that it is ready")
	}
	s.store.Fault(nil)
	if err := s.Look(t.Context()); err != nil || s.Ready() != nil {
		t.Errorf("%v, %v, and there is room", err, s.Ready())
	}
	if u := do(t, s, enable("a", "fn2")); u.State != journal.Live || !s.Stats().Ready {
		t.Errorf("%+v", u)
	}
}

// TestEndsAreWrittenLater: an update whose end there is no room for ends when there
// is, and nobody is told before.
func TestEndsAreWrittenLater(t *testing.T) {
	w := newWorld(t)
	retry, tried := make(chan time.Time), make(chan struct{})
	var s *Service
	w.Retry = func() <-chan time.Time {
		tried <- struct{}{}
		return retry
	}
	w.At = func(point string) {
		if point == BeforeAnswer {
			fill(s, syscall.ENOSPC)
		}
	}
	s, _ = w.start(t)
	u, err := s.Submit(t.Context(), enable("a", "fn1"))
	if err != nil {
		t.Fatal(err)
	}
	<-tried
	retry <- time.Time{}
	<-tried // there still is no room
	if now, err := s.Update(t.Context(), u.ID); err != nil || now.State != journal.Running || s.Ready() == nil {
		t.Errorf("%+v, %v, ready: %v", now, err, s.Ready())
	}
	if got := enabled(t, s); len(got) != 0 {
		t.Errorf("%v are shown, and a restart would take them back", got)
	}
	s.store.Fault(nil)
	retry <- time.Time{}
	if u, err = s.Wait(t.Context(), u.ID); err != nil || u.State != journal.Live || s.Ready() != nil {
		t.Errorf("%+v, %v, ready: %v", u, err, s.Ready())
	}
}

// TestFullAtTheEnd: a server that is stopped while there is no room ends, and the
// next one carries out what was accepted.
func TestFullAtTheEnd(t *testing.T) {
	w := newWorld(t)
	tried := make(chan struct{}, 100)
	var s *Service
	w.Retry = func() <-chan time.Time {
		tried <- struct{}{}
		return nil // never
	}
	w.At = func(point string) {
		if point == BeforeAnswer {
			fill(s, syscall.ENOSPC)
		}
	}
	s, kill := w.start(t)
	u, err := s.Submit(t.Context(), enable("a", "fn1"))
	if err != nil {
		t.Fatal(err)
	}
	<-tried
	kill()
	w.At = nil
	s, _ = w.start(t)
	if u, err = s.Wait(t.Context(), u.ID); err != nil || u.State != journal.Live {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestBreaksDown: what will not pass ends the service, and says so to whoever runs
// it; a journal that was removed, too.
func TestBreaksDown(t *testing.T) {
	for name, harm := range map[string]func(*Service, string) error{
		"the disk fails": func(s *Service, _ string) error {
			fill(s, syscall.EIO)
			_, err := s.Submit(t.Context(), enable("a", "fn1"))
			return err
		},
		"the directory is removed": func(s *Service, dir string) error {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			return s.Look(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, _ := w.start(t)
			if err := harm(s, w.dir); !errors.Is(err, journal.ErrBroken) {
				t.Errorf("%v, want ErrBroken", err)
			}
			select {
			case <-s.Failed():
			default:
				t.Error("nobody is told")
			}
			if err := s.Ready(); !errors.Is(err, ErrBroken) {
				t.Errorf("ready: %v", err)
			}
			if _, err := s.Submit(t.Context(), enable("a", "fn2")); !errors.Is(err, ErrBroken) {
				t.Errorf("%v, want ErrBroken", err)
			}
		})
	}
}
