// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAcceptedIsOnDisk: what Accept and Answer have returned from is in what a
// killed process leaves.
func TestAcceptedIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	for i := range 5 {
		o := order("a", fmt.Sprint(i), i, i+1)
		u := accept(t, s, o)
		left := openIn(t, image(t, dir))
		got := left.Unanswered()
		o.Update = u
		if len(got) != 1 || cmp.Diff(got[0], o) != "" {
			t.Fatalf("after a kill: %+v, want %+v", got, o)
		}
		u.State, u.Batch, u.Ended = Live, int64(i), time.Unix(5, 7).UTC()
		var want []int
		for n := range i + 2 { // all so far
			want = append(want, n)
		}
		w := Want{"a", "o", want, tagOf(newWhich(want).Bitmap), Lease{}}
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
		left = openIn(t, image(t, dir))
		end, err := left.Update(t.Context(), u.ID)
		ws := left.Wants()
		if err != nil || end != u || cmp.Diff(ws, []Want{w}) != "" {
			t.Fatalf("after a kill: %+v, %v, want %+v; %v, want %v", end, err, u, ws, w)
		}
	}
}

// TestGroup: many write at the same time; each gets an ID of its own, updates are
// entered in their order before anybody is told, and one that cannot be written
// costs the others nothing.
func TestGroup(t *testing.T) {
	s := openIn(t, t.TempDir())
	var mu sync.Mutex
	var entered []int64
	var wg sync.WaitGroup
	for c := range 16 {
		wg.Go(func() {
			for i := range 20 {
				u, err := s.Accept(order(fmt.Sprint(c), fmt.Sprint(i/2), c), func(u Update) {
					mu.Lock()
					defer mu.Unlock()
					entered = append(entered, u.ID)
				})
				mu.Lock()
				known := slices.Contains(entered, u.ID)
				mu.Unlock()
				if err != nil || !known {
					t.Errorf("%+v, %v, entered %t", u, err, known)
				}
				if err := s.Answer([]Update{{ID: 1 << 40, State: Live}}, nil); err == nil {
					t.Error("an update that is not there was answered")
				}
			}
		})
	}
	wg.Wait()
	if len(entered) != 160 || !slices.IsSorted(entered) || len(slices.Compact(entered)) != 160 {
		t.Errorf("%d entered: %v, want 160, ascending", len(entered), entered)
	}
}

// TestKeys: a key stands for one request of one client.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	first := accept(t, s, order("a", "k", 1))
	for range 2 {
		again, err := s.Accept(order("a", "k", 1), func(Update) { t.Error("entered twice") })
		if err != nil || again != first {
			t.Errorf("%+v, %v, want %+v", again, err, first)
		}
		other := order("a", "k", 1)
		other.Digest = "e"
		if _, err := s.Accept(other, func(Update) { t.Error("entered") }); !errors.Is(err, ErrKeyReused) {
			t.Errorf("%v, want ErrKeyReused", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openIn(t, dir)
	}
	if u := accept(t, s, order("b", "k", 1)); u.ID == first.ID {
		t.Error("two clients share an update")
	}
}

// TestAnsweredOnce: an end is final.
func TestAnsweredOnce(t *testing.T) {
	s := openIn(t, t.TempDir())
	u := accept(t, s, order("a", "", 1))
	u.State = Cancelled
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	u.State = Live
	if err := s.Answer([]Update{u}, nil); err == nil {
		t.Error("answered twice")
	}
	if ws := s.Wants(); len(ws) != 0 {
		t.Errorf("half of it was written: %v", ws)
	}
}

// TestRuns: results are kept, and what a killed server was at begins again, once.
func TestRuns(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	at := time.Unix(10, 0).UTC()
	r, lost := began(t, s, "ipi-burst", at), began(t, s, "lost", at)
	waits, err := s.AddRun("waits", `{"seed":7}`, at)
	if err != nil {
		t.Fatal(err)
	}
	files := []File{{"a.csv", "text/csv", []byte("x\n1\n")}, {"plot.svg", "image/svg+xml", []byte("<svg/>")}}
	if err := s.EndRun(r.ID, Done, "", at, files); err != nil {
		t.Fatal(err)
	}
	if err := s.EndRun(r.ID, Failed, "again", at, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("ended twice: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openIn(t, dir)
	cut := Run{lost.ID, "lost", "", Queued, endedFirst, at, time.Time{}, 0}
	for range 2 {
		if again, err := s.Resume(t.Context(), at); err != nil || cmp.Diff(again, []Run{cut, waits}) != "" {
			t.Fatalf("%v, %v wait, want %v", err, again, []Run{cut, waits})
		}
	}
	if err := s.BeginRun(lost.ID); err != nil {
		t.Fatal(err)
	}
	if again, err := s.Resume(t.Context(), at); err != nil || cmp.Diff(again, []Run{waits}) != "" {
		t.Fatalf("%v, %v wait, want %v", err, again, waits)
	}
	got := s.Runs()
	want := []Run{
		{r.ID, "ipi-burst", "", Done, "", at, at, 10},
		{lost.ID, "lost", "", Failed, "the server ended twice while it ran", at, at, 0},
		waits,
	}
	if err != nil || cmp.Diff(got, want) != "" {
		t.Errorf("%v, %v", cmp.Diff(got, want), err)
	}
	_, names, err := s.Run(t.Context(), r.ID)
	if err != nil || len(names) != 2 || names[1].Name != "plot.svg" {
		t.Errorf("%v, %v", names, err)
	}
	f, err := s.File(t.Context(), r.ID, "a.csv")
	if err != nil || cmp.Diff(f, files[0]) != "" {
		t.Errorf("%v, %v", f, err)
	}
	if _, err := s.File(t.Context(), r.ID, "../secret"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

// TestReadersGiveTheLockBack: whatever is asked for, and found or not, the writer can go on.
func TestReadersGiveTheLockBack(t *testing.T) {
	s := openIn(t, t.TempDir())
	furnish(t, s)
	ctx := t.Context()
	for name, ask := range map[string]func(){
		"size":       func() { s.Size() },
		"runs":       func() { s.Runs() },
		"run":        func() { _, _, _ = s.Run(ctx, 1) },
		"no run":     func() { _, _, _ = s.Run(ctx, 99) },
		"file":       func() { _, _ = s.File(ctx, 1, "jump-label.csv") },
		"no file":    func() { _, _ = s.File(ctx, 99, "") },
		"spent":      func() { s.Spent() },
		"batch":      func() { s.LastBatch() },
		"unanswered": func() { s.Unanswered() },
		"update":     func() { _, _ = s.Update(ctx, 1) },
		"open":       func() { _, _ = s.Update(ctx, 12) },
		"no update":  func() { _, _ = s.Update(ctx, 99) },
		"gone":       func() { s.gone() },
		"key":        func() { _, _ = s.ByKey(ctx, "client0", "key0", "d") },
		"no key":     func() { _, _ = s.ByKey(ctx, "client0", "none", "d") },
		"updates":    func() { _, _, _ = s.Updates(ctx, Query{}) },
		"wants":      func() { s.Wants() },
		"by":         func() { s.WantedBy([]int{1}) },
		"of":         func() { s.WantsOf("client0") },
		"after":      func() { s.WantsAfter("", "", 1) },
		"half over":  func() { s.HalfOver("client0", someTime) },
		"over":       func() { s.Over(someTime) },
		"tag":        func() { s.Tag("client0", "o") },
		"no tag":     func() { s.Tag("none", "o") },
		"has":        func() { s.HasWants("client0", "o") },
	} {
		ask()
		if !s.mu.TryLock() {
			t.Fatalf("%s: the lock is held", name)
		}
		s.mu.Unlock()
	}
}
