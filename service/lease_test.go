// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestLeaseEnds: what a client does not renew is taken away by an update of its, once; what it
// renews stays.
func TestLeaseEnds(t *testing.T) {
	w := newWorld(t)
	var now atomic.Int64
	now.Store(time.Now().Unix())
	w.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	s, kill := w.start(t)
	for _, client := range []string{"dies", "lives"} {
		r := enable(client, "fn1")
		r.Lease = 1000
		do(t, s, r)
	}
	do(t, s, enable("ever", "fn2"))
	now.Add(999)
	if err := s.Renew(t.Context(), "lives"); err != nil {
		t.Fatal(err)
	}
	if err := s.EndLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if wants, _ := s.Client("dies"); len(wants) != 1 {
		t.Errorf("ended too early: %v", wants)
	}
	kill()
	now.Add(1)
	s, _ = w.start(t)
	for range 2 {
		if err := s.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	us, err := s.Updates(t.Context(), Query{Client: "dies", After: 1})
	if err != nil || len(us) != 1 || !us[0].Set {
		t.Fatalf("%+v, %v: want one update that takes it away", us, err)
	}
	if u, err := s.Wait(t.Context(), us[0].ID); err != nil || u.State != journal.Live {
		t.Errorf("%+v, %v", u, err)
	}
	for client, n := range map[string]int{"dies": 0, "lives": 1, "ever": 1} {
		if wants, _ := s.Client(client); len(wants) != n {
			t.Errorf("%s wants %v", client, wants)
		}
	}
}

// TestLeaseRenewedWhileItsEndIsHeld: the update that ends a lease is withdrawn by a renewal, also after a restart, and what
// the client wants stays.
func TestLeaseRenewedWhileItsEndIsHeld(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t)
		w.Budget = []Limit{{Name: "ipis", Max: 3, Period: time.Hour}}
		var now atomic.Int64
		now.Store(time.Now().Unix())
		w.Now = func() time.Time { return time.Unix(now.Load(), 0) }
		s, kill := w.start(t)
		r := enable("a", "fn1")
		r.Lease = 10
		do(t, s, r)
		now.Add(11)
		if err := s.EndLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		if restart {
			kill()
			s, _ = w.start(t)
		}
		if err := s.Renew(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if us, err := s.Updates(t.Context(), Query{After: 1}); err != nil || len(us) != 1 || us[0].State != journal.Cancelled {
			t.Errorf("%+v, %v: want one that is cancelled", us, err)
		}
		if _, open := s.Client("a"); len(open) != 0 || len(enabled(t, s)) != 1 {
			t.Errorf("%v are open, %v enabled", open, enabled(t, s))
		}
	}
}

// TestLeaseRenewedWhileItEnds: who renews a lease whose end is being carried out is told that it is over.
func TestLeaseRenewedWhileItEnds(t *testing.T) {
	w := newWorld(t)
	var now atomic.Int64
	now.Store(time.Now().Unix())
	w.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	begun, goOn := make(chan struct{}), make(chan struct{})
	var ends atomic.Bool
	w.At = func(point string) {
		if point == BeforeApply && ends.Load() {
			begun <- struct{}{}
			<-goOn
		}
	}
	s, _ := w.start(t)
	r := enable("a", "fn1")
	r.Lease = 10
	do(t, s, r)
	ends.Store(true)
	now.Add(11)
	if err := s.EndLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-begun
	renewed := make(chan error, 1)
	go func() { renewed <- s.Renew(t.Context(), "a") }()
	for s.store.HalfOver("a", w.Now()) { // until the journal has it
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	if err := <-renewed; err != nil {
		t.Error(err)
	}
	if wants, open := s.Client("a"); len(wants)+len(open) > 0 {
		t.Errorf("%v are wanted, %v open", wants, open)
	}
}

// TestLeaseOfAClockThatIsSet: a clock that is set forward or back, also while the server is not looked at, ends no lease and
// has none go on for longer than it is.
func TestLeaseOfAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		w := newWorld(t)
		var past, set atomic.Int64
		start := time.Now().Round(0)
		w.Now = func() time.Time { return start.Add(time.Duration(past.Load() + set.Load())) }
		w.Steady = func() time.Duration { return time.Duration(past.Load()) }
		s, _ := w.start(t)
		look := func(want int) {
			t.Helper()
			if err := s.EndLeases(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, open := s.Client("a"); len(open) > 0 {
				if _, err := s.Wait(t.Context(), open[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			if wants, _ := s.Client("a"); len(wants) != want {
				t.Errorf("set by %v: %v", by, wants)
			}
		}
		r := enable("a", "fn1")
		r.Lease = 10
		do(t, s, r)
		past.Add(int64(9 * time.Second))
		set.Store(int64(by))
		look(1)
		past.Add(int64(9 * time.Second))
		look(1)
		past.Add(int64(time.Second))
		look(0)
	}
}
