// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestHold: of 6 interrupts an hour two updates take 3 each. A third one is refused until half an hour later, or held
// until then, also over a restart; those that are held go together, as one, and before others.
func TestHold(t *testing.T) {
	w := newWorld(t)
	w.Budget = []Limit{{Name: "ipis", Max: 6, Period: time.Hour}, {Name: "isolated", Max: 1, Period: time.Hour}}
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var past atomic.Int64
	w.Now = func() time.Time { return start.Add(time.Duration(past.Load())) }
	s, kill := w.start(t)
	for _, name := range []string{"fn1", "fn2"} {
		do(t, s, enable("a", name))
	}
	fits := start.Add(30 * time.Minute)
	var held *HeldError
	if _, err := s.Submit(t.Context(), enable("a", "fn3")); !errors.As(err, &held) || !held.Fits.Equal(fits) {
		t.Errorf("%v, want one that fits at %v", err, fits)
	}
	wait := func(client, name string) Update {
		r := enable(client, name)
		r.Hold = true
		u, err := s.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	third, fourth := wait("a", "fn3"), wait("b", "fn4")
	isHeld := func(id int64, fits time.Time) {
		t.Helper()
		for range 1000 {
			if u, err := s.Update(t.Context(), id); err != nil || u.State == journal.Held && u.Fits.Equal(fits) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		u, err := s.Update(t.Context(), id)
		t.Errorf("%+v, %v, want one that is held until %v", u, err, fits)
	}
	isHeld(third.ID, fits)
	isHeld(fourth.ID, fits)
	if all, err := s.Updates(t.Context(), Query{State: journal.Held}); err != nil || len(all) != 2 {
		t.Errorf("%v are held, %v", all, err)
	}
	kill()
	s, _ = w.start(t) // which takes 3 more than there are: they are not owed
	isHeld(fourth.ID, fits)
	past.Store(int64(fits.Sub(start)) - 1)
	do(t, s, disable("c", "fn9")) // which switches nothing, and has those that are held looked at
	isHeld(third.ID, fits)
	if _, err := s.Submit(t.Context(), enable("c", "fn5")); !errors.As(err, &held) || held.Fits.Before(fits) {
		t.Errorf("%v, want one that comes behind those that are held", err)
	}
	past.Store(int64(fits.Sub(start)))
	do(t, s, disable("c", "fn9"))
	for _, id := range []int64{third.ID, fourth.ID} {
		if u, err := s.Wait(t.Context(), id); err != nil || u.State != journal.Live || !u.Fits.IsZero() {
			t.Errorf("%+v, %v", u, err)
		}
	}
	if all := enabled(t, s); !slices.Equal(all, []int{1, 2, 3, 4}) {
		t.Errorf("%v are enabled", all)
	}
	fifth := wait("a", "fn5")
	isHeld(fifth.ID, fits.Add(30*time.Minute))
	for range statusUpdates {
		do(t, s, disable("c", "fn9"))
	}
	now, err := s.Status(t.Context())
	if all := now.Updates; err != nil || len(all) != statusUpdates+1 || all[statusUpdates].ID != fifth.ID || all[0].ID < all[1].ID {
		t.Errorf("%+v, %v: want the last updates and the one that is held", all, err)
	}
	if u, err := s.Cancel(t.Context(), fifth.ID); err != nil || u.State != journal.Cancelled {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestLimits: a limit of each client is its own; what never fits is refused though it would wait; and a quiet time
// holds, too.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.Budget = []Limit{{Name: "ipis", Max: 3, Period: time.Hour, Client: true}, {Name: "burst", Max: 4, Period: time.Nanosecond}}
	var now atomic.Pointer[time.Time]
	w.Now = func() time.Time { return *now.Load() }
	now.Store(new(time.Date(2030, 1, 1, 7, 59, 0, 0, time.Local)))
	w.Quiet = []Window{{480, 1080}}
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1"))
	if _, err := s.Submit(t.Context(), enable("a", "fn2")); !errors.Is(err, ErrBudget) {
		t.Errorf("its own allowance is spent: %v", err)
	}
	do(t, s, enable("b", "fn2"))
	now.Store(new(now.Load().Add(time.Minute)))
	r := enable("c", "fn3")
	r.Hold = true
	u, err := s.Submit(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	now.Store(new(now.Load().Add(10 * time.Hour)))
	do(t, s, enable("d", "fn3"))
	if u, err = s.Wait(t.Context(), u.ID); err != nil || u.State != journal.Live {
		t.Errorf("%+v, %v", u, err)
	}
	kill()
	w.Budget = []Limit{{Name: "ipis", Max: 2, Period: time.Hour}}
	s, _ = w.start(t)
	r = enable("a", "fn9")
	r.Hold = true
	if _, err := s.Submit(t.Context(), r); !errors.Is(err, ErrBudget) {
		t.Errorf("it never fits: %v", err)
	}
}

// TestOneHeldByItsOwn: a client that has spent its own allowance, and holds updates, holds nobody else up; one that waits
// for everybody's does.
func TestOneHeldByItsOwn(t *testing.T) {
	w := newWorld(t)
	w.Budget = []Limit{{Name: "ipis", Max: 3, Period: time.Hour, Client: true}, {Name: "ipis", Max: 9, Period: time.Hour}}
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	w.Now = func() time.Time { return at }
	s, _ := w.start(t)
	do(t, s, enable("a", "fn1"))
	waits := func(r Request) Request { r.Hold = true; return r }
	hold := func(r Request) Update {
		u, err := s.Submit(t.Context(), waits(r))
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	held, behind := hold(enable("a", "fn2")), hold(disable("a", "fn1"))
	if u := do(t, s, waits(enable("b", "fn3"))); u.State != journal.Live {
		t.Errorf("%+v", u)
	}
	do(t, s, enable("c", "fn4")) // which is not to be held
	for _, u := range []Update{held, behind} {
		if u, err := s.Update(t.Context(), u.ID); err != nil || u.State != journal.Held || !u.Fits.Equal(at.Add(time.Hour)) {
			t.Errorf("%+v, %v", u, err)
		}
	}
	last := hold(enable("d", "fn5")) // 9 are spent: it fits when 3 have come again
	do(t, s, disable("e", "fn9"))
	if u, err := s.Update(t.Context(), last.ID); err != nil || u.State != journal.Held || !u.Fits.Equal(at.Add(20*time.Minute)) {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Submit(t.Context(), enable("e", "fn6")); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
}

// TestLimitFits: a bucket of 500 an hour, by hand.
func TestLimitFits(t *testing.T) {
	l := Limit{Name: "isolated", Max: 500, Period: time.Hour}
	each := time.Hour / 500
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		spent      time.Duration // until then
		take       int
		fits, then time.Duration
	}{
		{-time.Hour, 500, 0, time.Hour}, {0, 3, 0, 3 * each}, {100 * each, 400, 0, 500 * each}, {100 * each, 401, each, 500 * each},
		{time.Hour, 3, 3 * each, time.Hour}, {100 * time.Hour, 3, 3 * each, time.Hour}, // the clock was set back
		{each, 501, each, time.Hour}, // it waits for all of them
	} {
		until := at.Add(c.spent)
		if got := l.Fits(at, until, c.take); !got.Equal(at.Add(c.fits)) {
			t.Errorf("%+v: it fits after %v", c, got.Sub(at))
		}
		if got := l.Spend(at, until, c.take); !got.Equal(at.Add(c.then)) {
			t.Errorf("%+v: all are there again after %v", c, got.Sub(at))
		}
	}
}
