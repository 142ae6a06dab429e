// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestRanges: ascending numbers, those that follow each other as a range.
func TestRanges(t *testing.T) {
	for want, ids := range map[string][]int64{"": nil, "3": {3}, "3-4": {3, 4}, "1, 3": {1, 3},
		"3, 5-9":      {3, 5, 6, 7, 8, 9},
		"1-2, 4, 6-7": {1, 2, 4, 6, 7}} {
		if got := ranges(ids); got != want {
			t.Errorf("%v: %s, want %s", ids, got, want)
		}
	}
}

// TestSegmentNames: a segment's name has its first frame's number, as it is written and no other way.
func TestSegmentNames(t *testing.T) {
	for _, first := range []uint64{0, 1, 0xabc, 1<<64 - 1} {
		if got, ok := segmentOf(segmentName(first)); got != first || !ok {
			t.Errorf("%s: %d, %v", segmentName(first), got, ok)
		}
	}
	for _, name := range []string{"", "textpoke-.log", "textpoke-1.log", "textpoke-0000000000000ABC.log",
		"0000000000000abc.log",
		"textpoke-0000000000000abc.new", "textpoke-0000000000000abg.log"} {
		if _, ok := segmentOf(name); ok {
			t.Errorf("%q is a segment", name)
		}
	}
}

// TestFollows: a log is refused that ends before a frame which was acknowledged, and one whose last frame is another.
func TestFollows(t *testing.T) {
	ours, other := link{1}, link{2}
	for i, c := range []struct {
		next, number uint64
		known        link
		want         string
	}{
		{5, 0, other, "<nil>"}, {0, 0, other, "<nil>"}, {5, 4, ours, "<nil>"}, {5, 3, other, "<nil>"},
		{5, 4, other, headName + ": damaged: the log is of another history"},
		{5, 5, ours, headName + ": damaged: frame 5 was on the disk, and the log ends with 4"},
		{5, 9, ours, headName + ": damaged: frame 9 was on the disk, and the log ends with 4"},
	} {
		err := (&log{next: c.next, link: ours}).follows(c.number, c.known)
		var damaged *DamagedError
		if errors.As(err, &damaged) {
			err = errors.New(headName + ": damaged: " + damaged.Why)
		}
		if fmt.Sprint(err) != c.want {
			t.Errorf("%d: %v, want %s", i, err, c.want)
		}
	}
}

// TestRows: rows are found by their numbers, and those that are forgotten, and not open, are not kept, with their
// keys.
func TestRows(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		s := newState()
		s.Version, s.Count = version, 100
		kept := map[int64]bool{} // by ID: it is open
		next := int64(1)
		for range 60 {
			switch id := 1 + rng.Int64N(next); rng.IntN(3) {
			case 0:
				a := &accepted{Update: Update{ID: next, Client: "c", Key: fmt.Sprint("k", next)}, Which: newWhich([]int{1})}
				if err := s.apply(&entry{Accept: a}, place{1, next}); err != nil {
					t.Fatal(err)
				}
				kept[next] = true
				next++
			case 1:
				if !kept[id] {
					continue
				}
				end := &ending{Update: Update{ID: id, State: Failed, Ended: someTime}}
				if err := s.apply(&entry{End: end}, place{2, id}); err != nil {
					t.Fatal(err)
				}
				kept[id] = false
			case 2:
				if err := s.apply(&entry{Forget: &forgotten{Updates: id - 1}}, place{}); err != nil {
					t.Fatal(err)
				}
				maps.DeleteFunc(kept, func(old int64, open bool) bool { return old < id && !open })
			}
			if wrong := s.unlike(kept, next); wrong != "" {
				t.Fatalf("seed %d: %s", seed, wrong)
			}
		}
	}
}

// unlike tells faults in the rows of updates before next, of which some are kept, and open or not.
func (s *state) unlike(kept map[int64]bool, next int64) string {
	for id := range next + 2 {
		open, there := kept[id]
		r := s.row(id)
		switch has := r != nil && r.state != ""; {
		case has != there:
			return fmt.Sprintf("update %d is there: %v", id, has)
		case there && (r.accept != place{1, id} || (r.end == place{2, id}) == open || (r.state == Queued) != open):
			return fmt.Sprintf("update %d, open %v: %+v", id, open, r)
		}
		if key := s.keys[hashOf("c", fmt.Sprint("k", id))]; id > 0 && there != (key == id) {
			return fmt.Sprintf("update %d has the key of %d", id, key)
		}
	}
	oldest := slices.Min(append(slices.Collect(maps.Keys(kept)), next))
	if len(s.damaged()) > 0 || len(s.rows) > 0 && s.first > oldest {
		return fmt.Sprintf("damaged are %v, rows begin with %d, want %d", s.damaged(), s.first, oldest)
	}
	if gone := s.Gone + 1; s.first < min(gone, oldest) {
		return fmt.Sprintf("rows begin with %d, and up to %d none is kept", s.first, min(gone, oldest))
	}
	return ""
}

// TestLeaseBorders: a lease is half over behind its half, and over at its end; one that is renewed begins again, and
// only its own client's, or all.
func TestLeaseBorders(t *testing.T) {
	s := openIn(t, t.TempDir())
	for client, seconds := range map[string]int64{"a": 10, "b": 10, "ever": 0} {
		o := order(client, "", 1)
		o.Lease = seconds
		u := accept(t, s, o)
		u.State, u.Ended = Live, someTime
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
	}
	after := func(d time.Duration) time.Time { return someTime.Add(d) }
	look := func(at time.Time, half string, over int) {
		t.Helper()
		got := ""
		for _, client := range []string{"a", "b", "ever"} {
			if s.HalfOver(client, at) {
				got += client + " "
			}
		}
		if all := s.Over(at); got != half || len(all) != over {
			t.Errorf("%v: half over are %q, over %v; want %q and %d", at, got, all, half, over)
		}
	}
	look(after(5*time.Second), "", 0)
	look(after(5*time.Second+1), "a b ", 0)
	look(after(10*time.Second-1), "a b ", 0)
	look(after(10*time.Second), "a b ", 2)
	for _, c := range []struct {
		client string
		half   string
		over   int
	}{{"ever", "a b ", 2}, {"nobody", "a b ", 2}, {"a", "b ", 1}, {"", "", 0}} {
		if err := s.Renew(c.client, after(10*time.Second)); err != nil {
			t.Fatal(err)
		}
		look(after(10*time.Second), c.half, c.over)
	}
}

// TestMatchOfLeases: an update that ends a lease is accepted only when that is over, and nothing of its client and ops
// is on its way, also in the same transaction.
func TestMatchOfLeases(t *testing.T) {
	s := openIn(t, t.TempDir())
	o := order("a", "", 1)
	o.Lease = 10
	u := accept(t, s, o)
	u.State, u.Ended = Live, someTime
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	ends := order("a", "")
	ends.Set, ends.Match = true, s.Tag("a", "o")
	for i, c := range []struct {
		over   time.Time
		client string
		ok     bool
	}{{someTime.Add(10*time.Second - 1), "a", false}, {someTime.Add(time.Hour), "other", false},
		{someTime.Add(10 * time.Second), "a", true},
		{someTime.Add(time.Hour), "a", false}} { // one is on its way
		ends.Over, ends.Client = c.over, c.client
		if _, err := s.Accept(ends, func(Update) {}); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrChanged) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestWantsAfter: who wants something, by client and ops, behind one of them and at most so many.
func TestWantsAfter(t *testing.T) {
	s := openIn(t, t.TempDir())
	var us []Update
	for i, who := range []owner{{"a", "o"}, {"a", "p"}, {"b", "o"}, {"c", "n"}} {
		o := order(who.client, "", i)
		o.Ops = who.ops
		u := accept(t, s, o)
		u.State, u.Ended = Live, someTime
		us = append(us, u)
	}
	if err := s.Answer(us, nil); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		client, ops string
		limit       int
		want        string
	}{{"", "", 9, "ao ap bo cn "}, {"a", "o", 9, "ap bo cn "}, {"a", "oo", 2, "ap bo "},
		{"b", "", 1, "bo "}, {"c", "n", 3, ""}, {"", "", 0, ""},
		{"", "", 4, "ao ap bo cn "}} {
		got := ""
		for _, w := range s.WantsAfter(c.client, c.ops, c.limit) {
			got += w.Client + w.Ops + " "
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
	if !s.HasWants("a", "p") || s.HasWants("a", "n") || s.LastBatch() != 0 {
		t.Error("a wants something with p alone, and there was no batch")
	}
}

// TestUnfinishedGoes: a start removes what a server began and did not finish, and leaves what is needed or somebody
// else's.
func TestUnfinishedGoes(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	r := began(t, s, "x", someTime)
	if err := s.EndRun(r.ID, Done, "", someTime, []File{{"a.csv", "text/csv", []byte("x\n")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list := func() (names []string) {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	others := []string{"notes.txt", "notes" + unfinished, segmentPrefix + "9.old"}
	want := append(list(), others...)
	for _, name := range append(others, runPrefix+"9", namesPrefix+"9", segmentPrefix+"9"+unfinished) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	openIn(t, dir)
	slices.Sort(want)
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
