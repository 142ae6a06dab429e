// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestOneSync: the update of a client that waits takes one sync, for its end. A client that is told of it before has it
// on the disk by then: who stops waiting, and who asks for it again without waiting.
func TestOneSync(t *testing.T) {
	w := newWorld(t)
	var syncs atomic.Int64
	w.Observer.Written = func(time.Duration) { syncs.Add(1) }
	var stay atomic.Pointer[chan struct{}]
	w.At = func(point string) {
		if c := stay.Load(); c != nil && point == BeforeApply {
			<-*c
		}
	}
	s, _ := w.start(t)
	took := func(what string, want int64, do func()) {
		t.Helper()
		before := syncs.Load()
		if do(); syncs.Load()-before != want {
			t.Errorf("%s: %d syncs, want %d", what, syncs.Load()-before, want)
		}
	}
	ask := func(name string, waits bool) (u Update) {
		r := enable("a", name)
		r.Key, r.Waits = name, waits
		u, err := s.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	took("one that is waited for", 1, func() {
		if u, err := s.Wait(t.Context(), ask("fn1", true).ID); err != nil || u.State != "live" {
			t.Errorf("%+v, %v", u, err)
		}
	})
	free := make(chan struct{})
	stay.Store(&free)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	took("who stops waiting", 1, func() {
		if _, err := s.Wait(gone, ask("fn2", true).ID); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	took("asked for once more", 1, func() {
		ask("fn3", true)
		ask("fn3", false)
		ask("fn3", false)
	})
	took("one that is not waited for", 1, func() { ask("fn4", false) })
	close(free)
}
