// SPDX-License-Identifier: Apache-2.0

package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/service/journal"
)

// opened is a service that has nothing but updates on their way.
func opened(us ...Update) *Service {
	s := &Service{open: map[int64]*pending{}}
	for _, u := range us {
		s.open[u.ID] = newPending(u, nil, false)
	}
	return s
}

// ids are the numbers of updates, in their order.
func ids(us []Update) (out []int64) {
	for _, u := range us {
		out = append(out, u.ID)
	}
	return out
}

// TestOnTheirWay: a list of updates on their way has those of a state, behind one number and before another, of a
// client and ops where they are named, at most so many, from the oldest or the newest on.
func TestOnTheirWay(t *testing.T) {
	s := opened(Update{ID: 1, Client: "a", Ops: "x", State: journal.Held},
		Update{ID: 2, Client: "a", Ops: "y", State: journal.Held},
		Update{ID: 3, Client: "b", Ops: "x", State: journal.Running},
		Update{ID: 4, Client: "b", Ops: "x", State: journal.Held},
		Update{ID: 12, Client: "a", Ops: "x", State: journal.Held})
	for _, c := range []struct {
		q    Query
		want []int64
	}{
		{Query{}, []int64{1, 2, 4, 12}}, {Query{State: journal.Running}, []int64{3}}, {Query{State: journal.Queued}, nil},
		{Query{Newest: true}, []int64{12, 4, 2, 1}}, {Query{Newest: true, Limit: 1}, []int64{12}},
		{Query{Limit: 2}, []int64{1, 2}},
		{Query{Limit: 4}, []int64{1, 2, 4, 12}}, {Query{After: 1}, []int64{2, 4, 12}}, {Query{Before: 4}, []int64{1, 2}},
		{Query{Before: 12, After: 2}, []int64{4}}, {Query{Client: "a"}, []int64{1, 2, 12}}, {Query{Client: "c"}, nil},
		{Query{Ops: "x"}, []int64{1, 4, 12}}, {Query{Client: "a", Ops: "x"}, []int64{1, 12}},
	} {
		if c.q.State == "" {
			c.q.State = journal.Held
		}
		if got := ids(s.onTheirWay(c.q)); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.q, got, c.want)
		}
	}
	var many []Update
	for id := range int64(101) {
		many = append(many, Update{ID: id, State: journal.Queued})
	}
	if got := ids(opened(many...).onTheirWay(Query{State: journal.Queued})); len(got) != 100 || !slices.IsSorted(got) {
		t.Errorf("%d updates where no number is given: %v", len(got), got)
	}
}

// TestLongHeld: a screen has those that are held and not among the last updates, the first that fit, at most so many.
func TestLongHeld(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	all := []Update{{ID: 1, State: journal.Queued}, {ID: 2, State: journal.Held, Fits: at},
		{ID: 3, State: journal.Held, Fits: at},
		{ID: 4, State: journal.Held, Fits: at.Add(-1)}, {ID: 5, State: journal.Held, Fits: at.Add(1)}}
	if got := ids(opened(all...).longHeld(nil)); !slices.Equal(got, []int64{4, 2, 3, 5}) {
		t.Errorf("held are %v", got)
	}
	if got := ids(opened(all...).longHeld(all[2:3])); !slices.Equal(got, []int64{4, 2, 5}) {
		t.Errorf("held beside 3 are %v", got)
	}
	all = nil
	for id := range int64(statusHeld + 1) {
		all = append(all, Update{ID: id, State: journal.Held, Fits: at.Add(-time.Duration(id))})
	}
	got := ids(opened(all...).longHeld(nil))
	if len(got) != statusHeld || got[0] != statusHeld || slices.Contains(got, 0) {
		t.Errorf("held are %v", got)
	}
	var list []int
	for i := range 5 {
		list = keepLast(list, 3, i)
		if want := []int{0, 1, 2, 3, 4}[max(0, i-2) : i+1]; !slices.Equal(list, want) {
			t.Errorf("kept %v, want %v", list, want)
		}
	}
}

// TestRefusedByTheJournal: what a client has done wrong, and what may pass, breaks nothing down, whatever trouble the
// journal has; anything else does, if the journal has trouble.
func TestRefusedByTheJournal(t *testing.T) {
	s, _ := newWorld(t).start(t)
	lasting := errors.New("it lasts")
	if err := s.refused(lasting); err != lasting || s.Ready() != nil {
		t.Errorf("%v, and the journal has no trouble: %v", err, s.Ready())
	}
	fill(s, syscall.ENOSPC)
	if _, err := s.Submit(t.Context(), enable("a", "fn1")); !errors.Is(err, journal.ErrFull) {
		t.Fatal(err)
	}
	trouble := s.store.Trouble()
	for _, why := range []error{ErrKeyReused, ErrChanged, ErrClosed, trouble} {
		why = fmt.Errorf("update 3: %w", why)
		if err := s.refused(why); err != why || s.brokenDown() != nil {
			t.Errorf("%v of %v: %v", err, why, s.brokenDown())
		}
	}
	if err := s.refused(nil); err != nil || s.brokenDown() != nil {
		t.Errorf("%v of none: %v", err, s.brokenDown())
	}
	if err := s.refused(lasting); err != lasting || !errors.Is(s.brokenDown(), lasting) {
		t.Errorf("%v: %v", err, s.brokenDown())
	}
	s.breakDown(errors.New("later"))
	if want := ErrBroken.Error() + ": it lasts"; s.brokenDown().Error() != want {
		t.Errorf("%v, want what came first", s.brokenDown())
	}
}

// TestIdentity: SHA-256 of each record's address, as eight bytes, and of its names, each with a zero behind it.
func TestIdentity(t *testing.T) {
	table, err := records.New("some", "x86_64", []records.Raw{{Addr: 0x10, Symbol: "a"},
		{Addr: 0x2030, Symbol: "b", Module: "m"}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("\x00\x00\x00\x00\x00\x00\x00\x10a\x00\x00" +
		"\x00\x00\x00\x00\x00\x00\x20\x30b\x00m\x00"))
	want := journal.Identity{Records: "some", Hash: hex.EncodeToString(sum[:]), Count: 2, Names: []string{"a", "b [m]"}}
	if diff := cmp.Diff(want, Identity(table)); diff != "" {
		t.Error(diff)
	}
}

// TestFilterHasAnEnd: a filter of as many patterns as may be is taken, and one of one more is not; without a number of
// records a list has 100 of them.
func TestFilterHasAnEnd(t *testing.T) {
	w := newWorld(t)
	table, err := records.Open(t.Context(), "gen:n=101,groups=4", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Sim.Table = table
	s, _ := w.start(t)
	exprs := slices.Repeat([]string{"fn*"}, MaxPatterns)
	for range 3 { // each makes room for the next
		if all, err := s.Records(t.Context(), RecordQuery{Filter: exprs, After: -1}); err != nil || len(all) != 100 {
			t.Errorf("%d records, %v", len(all), err)
		}
	}
	want := fmt.Sprintf("filter: %d patterns, want at most %d", MaxPatterns+1, MaxPatterns)
	_, err = s.Records(t.Context(), RecordQuery{Filter: append(exprs, "fn*"), After: -1})
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	var group []int
	all, err := s.Records(t.Context(), RecordQuery{After: -1, Limit: 101})
	for _, r := range all {
		group = append(group, r.Group)
	}
	for i, g := range table.Groups() {
		if slices.Contains(group[:g.First], i) ||
			slices.ContainsFunc(group[g.First:g.Last], func(n int) bool { return n != i }) {
			t.Errorf("%v: group %d is %+v, %v", group, i, g, err)
		}
	}
}

// TestNobodyIsCounted: refused and ended updates are not on their way; an unknown name is told, clipped.
func TestNobodyIsCounted(t *testing.T) {
	s, _ := newWorld(t).start(t)
	for name, want := range map[string]string{"nobody": "no such symbol or address",
		strings.Repeat("x", 200): "no such symbol"} {
		_, err := s.Submit(t.Context(), enable("a", name))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 250 {
			t.Errorf("%v, want %s", err, want)
		}
	}
	_, _, err := s.WantedBy("nobody")
	if !errors.Is(err, ErrNotFound) || !strings.HasPrefix(err.Error(), `"nobody": no such symbol`) {
		t.Error(err)
	}
	if s.total != 0 || len(s.clients) != 0 {
		t.Errorf("%d updates of %v are counted", s.total, s.clients)
	}
	do(t, s, enable("a", "fn1"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total != 0 || len(s.clients) != 0 || len(s.open) != 0 {
		t.Errorf("%d updates of %v are counted when all have ended", s.total, s.clients)
	}
}
