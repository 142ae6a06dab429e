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

// TestLeaseRenewedWhileItsEndIsHeld: the update that ends a lease is withdrawn by a renewal, and what the client wants stays.
func TestLeaseRenewedWhileItsEndIsHeld(t *testing.T) {
	w := newWorld(t)
	w.Budget = []Limit{{Name: "ipis", Max: 3, Period: time.Hour}}
	var now atomic.Int64
	now.Store(time.Now().Unix())
	w.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	s, _ := w.start(t)
	r := enable("a", "fn1")
	r.Lease = 10
	do(t, s, r)
	now.Add(11)
	if err := s.EndLeases(t.Context()); err != nil {
		t.Fatal(err)
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
