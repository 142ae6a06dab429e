// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// TestLeases: a lease is over at its time, also after a restart and in another segment; a renewal
// is of all of a client's; one that is renewed meanwhile is not ended.
func TestLeases(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	at := time.Unix(1000, 0).UTC()
	for i, lease := range []int64{10, 20, 0} {
		o := order("a", "", i)
		o.Ops, o.Lease = []string{"x", "y", "z"}[i], lease
		u := accept(t, s, o)
		u.State, u.Ended = Live, at
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
	}
	over := func(after time.Duration) (ops []string) {
		for _, w := range s.Over(at.Add(after)) {
			ops = append(ops, w.Ops)
		}
		return ops
	}
	look := func(when string, at10, at20 []string) {
		t.Helper()
		if a, b := over(10*time.Second), over(20*time.Second); !slices.Equal(a, at10) || !slices.Equal(b, at20) {
			t.Errorf("%s: %q are over after 10 s, %q after 20 s", when, a, b)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openIn(t, dir)
	}
	if got := over(10*time.Second - 1); got != nil {
		t.Errorf("%q is over too early", got)
	}
	look("at first", []string{"x"}, []string{"x", "y"})
	s.segment = 0
	accept(t, s, order("b", "", 5)) // and another segment
	look("in another segment", []string{"x"}, []string{"x", "y"})
	if err := s.Renew("a", at.Add(5*time.Second)); err != nil {
		t.Fatal(err)
	}
	look("renewed", nil, []string{"x"})
	o := order("a", "")
	o.Ops, o.Set, o.Match, o.Over = "x", true, s.Tag("a", "x"), at.Add(10*time.Second)
	if _, err := s.Accept(o, func(Update) {}); !errors.Is(err, ErrChanged) {
		t.Errorf("what is renewed is ended: %v", err)
	}
	o.Over = at.Add(20 * time.Second)
	u := accept(t, s, o)
	u.State, u.Ended = Live, at
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	look("ended", nil, nil)
}

// TestMatch: of two who have seen the same, one changes it; while a change is on its way nobody
// can have seen what it will be.
func TestMatch(t *testing.T) {
	s := openIn(t, t.TempDir())
	set := func(match string, which ...int) (Update, error) {
		o := order("a", "", which...)
		o.Set, o.Match = true, match
		return s.Accept(o, func(Update) {})
	}
	nothing := s.Tag("a", "o")
	u, err := set(nothing, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set(nothing, 3); !errors.Is(err, ErrChanged) {
		t.Errorf("while another is on its way: %v", err)
	}
	u.State = Live
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := set(nothing, 3); !errors.Is(err, ErrChanged) {
		t.Errorf("of what is no more: %v", err)
	}
	tag := s.Tag("a", "o")
	if u, err = set(tag, 2, 3); err != nil {
		t.Fatal(err)
	}
	u.State = Live
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	if w := s.WantsOf("a"); len(w) != 1 || len(w[0].Which) != 2 || w[0].Which[0] != 2 || w[0].Tag == tag {
		t.Errorf("%+v", w)
	}
	for _, tt := range []struct{ rec, n int }{{1, 0}, {3, 1}} {
		if w := s.WantedBy([]int{tt.rec}); len(w) != tt.n {
			t.Errorf("record %d: %+v", tt.rec, w)
		}
	}
}
