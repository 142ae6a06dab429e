// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// TestNobodyIsToldFirst: at each point it holds the journal against what anybody
// could have been told by then. It turns red when an update is answered before its
// end is committed, or accepted before it is written.
func TestNobodyIsToldFirst(t *testing.T) {
	w := newWorld(t)
	var s *Service
	var mu sync.Mutex
	seen := map[string]int{}
	w.At = func(point string) {
		mu.Lock()
		seen[point]++
		mu.Unlock()
		if s == nil || point != BeforeAccept && point != AfterAccept && point != BeforeAnswer && point != AfterAnswer {
			return
		}
		time.Sleep(5 * time.Millisecond) // whoever is told too early has time to show it
		journal, _, err := s.store.Updates(t.Context(), journal.Query{})
		if err != nil {
			t.Error(err)
			return
		}
		inJournal := map[int64]State{}
		for _, u := range journal {
			inJournal[u.ID] = u.State
		}
		listed, err := s.Updates(t.Context(), Query{})
		if err != nil {
			t.Error(err)
		}
		for _, u := range listed {
			if u.State.Final() && inJournal[u.ID] != u.State {
				t.Errorf("%s: update %d is called %s, the journal has %s", point, u.ID, u.State, inJournal[u.ID])
			}
		}
		told, _ := past(s, 0)
		for _, e := range told {
			if e.Update != nil && (inJournal[e.Update.ID] == "" || e.Update.State.Final() &&
				inJournal[e.Update.ID] != e.Update.State) {
				t.Errorf("%s: an event tells of update %d as %s, the journal has %q", point, e.Update.ID, e.Update.State,
					inJournal[e.Update.ID])
			}
		}
		if want := map[string]bool{AfterAnswer: true}[point]; len(inJournal) > 0 {
			last := journal[len(journal)-1]
			if point != BeforeAccept && last.State.Final() != want {
				t.Errorf("%s: the journal has update %d as %s", point, last.ID, last.State)
			}
		}
		if got := enabled(t, s); point == AfterAnswer && slices.Contains(got, int(journal[len(journal)-1].ID)) {
			t.Errorf("record %d is shown as enabled, its update is not told as live yet", journal[len(journal)-1].ID)
		}
	}
	s, _ = w.start(t)
	for i := range 3 {
		do(t, s, enable("a", fmt.Sprintf("fn%d", i+1))) // record i is update i's
	}
	for _, point := range []string{BeforeAccept, AfterAccept, BeforeApply, AfterApply, BeforeAnswer, AfterAnswer} {
		if seen[point] != 3 {
			t.Errorf("point %q was passed %d times, want 3", point, seen[point])
		}
	}
}

// imageOf is a copy of the journal: what a process leaves that is killed now.
func imageOf(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	for _, e := range all { // the head before the log: an older one is what a kill may leave
		name := e.Name()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// left is what was there when a process might have been killed.
type left struct {
	point            string
	dir              string
	accepted, ending int // updates that Submit, and Wait, had returned
}

// TestKilledAtEveryPoint: whatever point a process ends at, the next one has every
// acknowledged update, each once, and the text that they make.
func TestKilledAtEveryPoint(t *testing.T) {
	w := newWorld(t)
	images := map[string]left{} // the last of each point
	var accepted, ended atomic.Int64
	collect := true
	w.At = func(point string) {
		if collect {
			images[point] = left{point, imageOf(t, w.dir), int(accepted.Load()), int(ended.Load())}
		}
	}
	s, kill := w.start(t)
	script := []Request{enable("a", "fn1", "fn2"), enable("b", "fn2"), disable("a", "fn2"), disable("b", "fn2"),
		enable("b", "fn7")}
	texts := [][]int{nil, {1, 2}, {1, 2}, {1, 2}, {1}, {1, 7}} // after so many
	for _, r := range script {
		u, err := s.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		accepted.Add(1)
		if _, err := s.Wait(t.Context(), u.ID); err != nil {
			t.Fatal(err)
		}
		ended.Add(1)
	}
	if _, err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill()
	collect = false
	for _, point := range slices.Sorted(maps.Keys(images)) {
		t.Run(point, func(t *testing.T) {
			at := images[point]
			again := &world{w.Config, w.Sim, nil, at.dir}
			s, _ := again.start(t)
			us, err := s.Updates(t.Context(), Query{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(us); n < at.accepted || n > at.accepted+1 {
				t.Fatalf("%d updates are there, %d were accepted", n, at.accepted)
			}
			for i, u := range us[:at.ending] {
				if u.Batch != int64(i+1) { // it was not carried out again
					t.Errorf("%+v", u)
				}
			}
			for i, u := range us {
				if u.State != journal.Live || u.ID != int64(i+1) {
					t.Errorf("%+v", u)
				}
			}
			if got := enabled(t, s); !slices.Equal(got, texts[len(us)]) {
				t.Errorf("enabled are %v, want %v", got, texts[len(us)])
			}
			want := map[int]bool{}
			for _, rec := range texts[len(us)] {
				want[rec] = true
			}
			s.live.(*simulated).CheckAll(func(rec int) bool { return want[rec] }) // start looks for violations in the end
		})
	}
	for _, point := range []string{BeforeAccept, AfterAccept, BeforeApply, AfterApply, BeforeAnswer, AfterAnswer,
		BeforeCompact, DuringCompact, AfterCompact} {
		if images[point].dir == "" {
			t.Errorf("nobody was killed %s", point)
		}
	}
	if len(images) < 10 {
		t.Errorf("only %d points: %v", len(images), slices.Sorted(maps.Keys(images)))
	}
}

// TestAGroupIsHandedInAtOnce: what is accepted and not handed in yet comes to the
// coordinator in one go, in the journal's order, whoever hands it in.
func TestAGroupIsHandedInAtOnce(t *testing.T) {
	const clients = 40
	w := newWorld(t)
	s, _ := w.start(t)
	var ids []int64
	for i := range clients {
		which := []int{i}
		_, err := s.store.Accept(journal.Order{Which: which, Update: Update{Client: fmt.Sprint("c", i/2), Ops: "o",
			Enable: i%2 == 0, Records: 1, Submitted: time.Now()}}, func(u Update) { s.enter(u, which, time.Time{}, Course{}) })
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, int64(i+1))
		s.mu.Lock()
		s.count(fmt.Sprint("c", i/2), 1) // as admit does
		s.mu.Unlock()
	}
	u := do(t, s, enable("last", "fn99"))
	for _, id := range ids {
		if got, err := s.Wait(t.Context(), id); err != nil || got.State != journal.Live || got.Batch != u.Batch {
			t.Errorf("%+v, %v: want live in batch %d", got, err, u.Batch)
		}
	}
	if st := s.Stats(); st.Batches != 1 || st.Merged != clients+1 {
		t.Errorf("%+v, want one batch", st)
	}
}
