// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestFitsBehindQuiet: who is refused hears when nothing keeps the update any more: behind times that follow each
// other, and behind one that begins before there is an allowance again.
func TestFitsBehindQuiet(t *testing.T) {
	day := func(hour, minute int) time.Time { return time.Date(2030, 1, 1, hour, minute, 0, 0, time.Local) }
	at := day(7, 0)
	w := newWorld(t)
	w.Quiet = []Window{{600, 660}, {480, 540}, {540, 600}} // 08:00 to 11:00
	w.Budget = []Limit{{Name: "ipis", Max: 3, Period: 90 * time.Minute}}
	w.Now = func() time.Time { return at }
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1"))
	for _, hour := range []int{7, 8} {
		kill()
		at = day(hour, 0)
		s, kill = w.start(t)
		var held *HeldError
		if _, err := s.Submit(t.Context(), enable("a", "fn2")); !errors.As(err, &held) || !held.Fits.Equal(day(11, 0)) {
			t.Errorf("at %d:00: %v, want it to fit at 11:00", hour, err)
		}
	}
}

// TestBudget: an update that alone would cost a CPU of the role more than the limit is refused, in both directions, and
// nothing of it happens; a role that no CPU has limits nothing.
func TestBudget(t *testing.T) {
	limit := func(name string, most int) []Limit { return []Limit{{Name: name, Max: most}} }
	w := newWorld(t)
	w.Budget = limit("idle", 3)
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1")) // three rounds
	kill()
	for name, refuses := range map[string]bool{"idle": true, "ipis": true, "isolated": false} {
		w.Budget = limit(name, 2)
		s, kill = w.start(t)
		before := len(enabled(t, s))
		for _, r := range []Request{enable("a", "fn2"), disable("a", "fn1")} {
			_, err := s.Submit(t.Context(), r)
			if refused := errors.Is(err, ErrBudget); refused != refuses {
				t.Errorf("%s=2: %v", name, err)
			}
		}
		do(t, s, disable("a", "fn3")) // which switches nothing
		if now := len(enabled(t, s)); refuses && now != before {
			t.Errorf("%s=2: %d records, want %d", name, now, before)
		}
		if !refuses {
			do(t, s, enable("a", "fn1"))
			do(t, s, disable("a", "fn2"))
		}
		kill()
	}
}

// TestQuiet: at quiet times updates are refused, and a lease that is over then ends afterwards.
func TestQuiet(t *testing.T) {
	for text, want := range map[string]*Window{"08:00-18:00": {480, 1080}, "22:30-06:00": {1350, 360}, "8-9": nil, "08:00": nil,
		"08:00-08:00": nil, "08:00-24:00": nil} {
		got, err := ParseWindow(text)
		if (err == nil) != (want != nil) || want != nil && (got != *want || got.String() != text) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if want := fmt.Sprintf("%q: want two times of a day, such as 08:00-18:00", text); err != nil && err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	w := newWorld(t)
	w.Quiet = []Window{{480, 1080}, {1350, 360}}
	at := func(clock string) {
		now, err := time.ParseInLocation("2006-01-02 15:04", "2030-01-01 "+clock, time.Local)
		if err != nil {
			t.Fatal(err)
		}
		w.Now = func() time.Time { return now }
	}
	for clock, quiet := range map[string]bool{"07:59": false, "08:00": true, "17:59": true, "18:00": false, "22:29": false,
		"22:30": true, "00:00": true, "05:59": true, "06:00": false} {
		at(clock)
		if until, why := (&Service{cfg: w.Config}).quiet(w.Now()); (why != "") != quiet || until.After(w.Now()) != quiet {
			t.Errorf("%s: until %v, %s", clock, until, why)
		}
	}
	at("07:00")
	s, kill := w.start(t)
	r := enable("a", "fn1")
	r.Lease = 60
	do(t, s, r)
	kill()
	at("09:00")
	s, kill = w.start(t)
	if _, err := s.Submit(t.Context(), disable("a", "fn1")); !errors.Is(err, ErrBudget) {
		t.Error(err)
	}
	if u := do(t, s, enable("b", "fn1")); u.State != journal.Live {
		t.Errorf("it switches nothing: %+v", u)
	}
	do(t, s, disable("b", "fn1"))
	if err := s.EndLeases(t.Context()); err != nil || len(enabled(t, s)) != 1 {
		t.Errorf("%v, enabled %v", err, enabled(t, s))
	}
	kill()
	at("19:00")
	s, _ = w.start(t)
	if err := s.EndLeases(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Drain(t.Context()); err != nil || len(enabled(t, s)) != 0 {
		t.Errorf("%v: enabled %v though the lease is over", err, enabled(t, s))
	}
}
