// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/service/journal"
)

// TestLiveStaysLive: what was answered as live is live after a restart.
func TestLiveStaysLive(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	if u := do(t, s, enable("a", "fn1", "fn2")); u.State != journal.Live || u.Batch != 1 || u.Records != 2 {
		t.Errorf("%+v", u)
	}
	do(t, s, enable("b", "fn2", "fn3"))
	do(t, s, disable("a", "fn2"))
	want := []int{1, 2, 3}
	if got := enabled(t, s); !slices.Equal(got, want) {
		t.Errorf("enabled are %v, want %v", got, want)
	}
	kill()
	s, _ = w.start(t)
	if got := enabled(t, s); !slices.Equal(got, want) {
		t.Errorf("after a restart %v are enabled, want %v", got, want)
	}
	do(t, s, disable("b", "fn2"))
	if got := enabled(t, s); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("enabled are %v, want 1 and 3", got)
	}
}

// TestRefusedRequests: what is impossible is refused by its field, and leaves
// nothing behind.
func TestRefusedRequests(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	for _, tt := range []struct {
		field  string
		change func(r *Request)
	}{
		{"client", func(r *Request) { r.Client = "" }},
		{"client", func(r *Request) { r.Client = "a\x00b" }},
		{"client", func(r *Request) { r.Client = strings.Repeat("x", maxName+1) }},
		{"key", func(r *Request) { r.Key = "\xff" }},
		{"ops", func(r *Request) { r.Ops = "" }},
		{"records", func(r *Request) { r.Records = nil }},
		{"records", func(r *Request) { r.Filter = []string{"fn*"} }},
		{"records", func(r *Request) { r.Records = []string{"fn1", "nobody"} }},
		{"records", func(r *Request) { r.Records = []string{"0x1"} }},
		{"records", func(r *Request) { r.Records = []string{"0xzz"} }},
		{"filter", func(r *Request) { r.Records, r.Filter = nil, []string{"fn1:what"} }},
		{"filter", func(r *Request) { r.Records, r.Filter = nil, []string{"nobody*"} }},
		{"deadline", func(r *Request) { r.Deadline = time.Now().Add(-time.Second) }},
	} {
		r := enable("a", "fn1")
		tt.change(&r)
		var field *FieldError
		if _, err := s.Submit(t.Context(), r); !errors.As(err, &field) || field.Field != tt.field {
			t.Errorf("%+v: %v, want a FieldError of %s", r, err, tt.field)
		}
	}
	if us, err := s.Updates(t.Context(), Query{}); err != nil || len(us) != 0 {
		t.Errorf("left behind: %v, %v", us, err)
	}
}

// TestChoose: records by symbol, by address and by filter.
func TestChoose(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	do(t, s, enable("a", "fn3", "fn3", w.Sim.Table.Addr(5).String()))
	do(t, s, Request{Client: "a", Ops: "p", Enable: true, Filter: []string{"fn1", "fn9?"}})
	want := []int{1, 3, 5, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99}
	if got := enabled(t, s); !slices.Equal(got, want) {
		t.Errorf("enabled are %v, want %v", got, want)
	}
	some, err := s.Records(t.Context(), RecordQuery{Filter: []string{"fn9*"}, After: 90, Limit: 2})
	if err != nil || len(some) != 2 || some[0].Index != 91 || !some[0].Enabled || some[0].Users != 1 ||
		some[0].Symbol != "fn91" {
		t.Errorf("%+v, %v", some, err)
	}
}

// TestKeyIsOneUpdate, also after a restart and while the queue is full.
func TestKeyIsOneUpdate(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	r := enable("a", "fn1")
	r.Key = "k"
	first := do(t, s, r)
	other := r
	other.Enable = false
	for range 2 {
		if again := do(t, s, r); again != first {
			t.Errorf("%+v, want %+v", again, first)
		}
		if _, err := s.Submit(t.Context(), other); !errors.Is(err, ErrKeyReused) {
			t.Errorf("%v, want ErrKeyReused", err)
		}
		kill()
		s, kill = w.start(t)
	}
}

// gate lets batches begin one by one: the first that comes is told, and stands until
// it may pass, or the test is over.
func gate(t *testing.T, w *world) (came, pass chan struct{}) {
	came, pass = make(chan struct{}, 100), make(chan struct{})
	w.At = func(point string) {
		if point == BeforeApply {
			came <- struct{}{}
			select {
			case <-pass:
			case <-t.Context().Done():
			}
		}
	}
	return came, pass
}

// TestQueue: what waits can be cancelled, expires, is merged, and is limited.
func TestQueue(t *testing.T) {
	w := newWorld(t)
	came, pass := gate(t, w)
	w.Queue, w.PerClient = 5, 4
	s, kill := w.start(t)
	submit := func(r Request) Update {
		t.Helper()
		u, err := s.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	first := submit(enable("a", "fn1"))
	<-came
	if _, err := s.Cancel(t.Context(), first.ID); !errors.Is(err, ErrTooLate) {
		t.Errorf("cancel of what runs: %v", err)
	}
	if u, err := s.Update(t.Context(), first.ID); err != nil || u.State != journal.Running || u.Batch != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	gone := submit(enable("a", "fn2"))
	late := enable("a", "fn3")
	late.Deadline = time.Now().Add(400 * time.Millisecond)
	expired, second := submit(late), submit(enable("a", "fn4"))
	if _, err := s.Submit(t.Context(), enable("a", "fn5")); !errors.Is(err, ErrClientQueueFull) {
		t.Errorf("%v, want ErrClientQueueFull", err)
	}
	third := submit(disable("b", "fn4"))
	if _, err := s.Submit(t.Context(), enable("c", "fn5")); !errors.Is(err, ErrQueueFull) {
		t.Errorf("%v, want ErrQueueFull", err)
	}
	if u, err := s.Cancel(t.Context(), gone.ID); err != nil || u.State != journal.Cancelled {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := s.Wait(t.Context(), expired.ID); err != nil || u.State != journal.Expired {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := s.Cancel(t.Context(), 1<<40); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
	fourth := submit(enable("c", "fn5")) // there is room again
	close(pass)
	for _, id := range []int64{first.ID, second.ID, third.ID, fourth.ID} {
		u, err := s.Wait(t.Context(), id)
		if err != nil || u.State != journal.Live || id != first.ID && u.Batch != 2 {
			t.Errorf("%+v, %v", u, err)
		}
	}
	if st := s.Stats(); st.Updates != 2 || st.Batches != 2 || st.Merged != 4 || st.Queued != 0 || st.Enabled != 3 ||
		st.Requests != 6 {
		t.Errorf("%+v", st)
	}
	kill()
	s, _ = w.start(t)
	if got := enabled(t, s); !slices.Equal(got, []int{1, 4, 5}) {
		t.Errorf("after a restart %v are enabled", got)
	}
	if u, err := s.Update(t.Context(), gone.ID); err != nil || u.State != journal.Cancelled {
		t.Errorf("after a restart: %+v, %v", u, err)
	}
}

// TestDrain: what waits is carried out; what there is no time for is left, named,
// and carried out after a restart.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	came, pass := gate(t, w)
	s, kill := w.start(t)
	ids := map[int64]bool{}
	for _, name := range []string{"fn1", "fn2", "fn3"} {
		u, err := s.Submit(t.Context(), enable("a", name))
		if err != nil {
			t.Fatal(err)
		}
		ids[u.ID] = true
	}
	<-came
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	go func() {
		for s.Ready() == nil {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond) // the update that runs finds itself cancelled
		close(pass)
	}()
	left, err := s.Drain(ctx)
	if len(left) == 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("left are %v, %v", left, err)
	}
	for _, u := range left {
		if _, err := s.Wait(t.Context(), u.ID); !ids[u.ID] || !errors.Is(err, ErrClosed) {
			t.Errorf("%+v: %v", u, err)
		}
	}
	if _, err := s.Submit(t.Context(), enable("a", "fn4")); !errors.Is(err, ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	if _, err := s.CPUs(t.Context()); err != nil {
		t.Errorf("a drained service still shows its CPUs: %v", err)
	}
	kill()
	if _, err := s.CPUs(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed one: %v", err)
	}
	s, _ = w.start(t)
	if got := enabled(t, s); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("after a restart %v are enabled", got)
	}
	if left, err := s.Drain(t.Context()); len(left) != 0 || err != nil {
		t.Errorf("nothing to drain: %v, %v", left, err)
	}
}

// TestJournalBreaks: when the journal cannot be written nobody is told that it was,
// nothing more is accepted, and the next start carries out what was.
func TestJournalBreaks(t *testing.T) {
	w := newWorld(t)
	var s *Service
	w.At = func(point string) {
		if point == BeforeAnswer {
			s.store.Close()
		}
	}
	st, err := journal.Open(t.Context(), w.dir, Identity(w.Sim.Table))
	if err != nil {
		t.Fatal(err)
	}
	if s, err = Start(t.Context(), w.with(st)); err != nil {
		t.Fatal(err)
	}
	u, err := s.Submit(t.Context(), enable("a", "fn1"))
	if err != nil {
		t.Fatal(err)
	}
	if u, err := s.Wait(t.Context(), u.ID); !errors.Is(err, ErrBroken) || u.State.Final() {
		t.Errorf("%+v, %v, want ErrBroken", u, err)
	}
	if _, err := s.Submit(t.Context(), enable("a", "fn2")); !errors.Is(err, ErrBroken) ||
		!errors.Is(s.Ready(), ErrBroken) {
		t.Errorf("%v, %v, want ErrBroken", err, s.Ready())
	}
	if got := enabled(t, s); len(got) != 0 {
		t.Errorf("enabled are %v", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	w.At = nil
	s, _ = w.start(t)
	if got := enabled(t, s); !slices.Equal(got, []int{1}) {
		t.Errorf("after a restart %v are enabled, want 1", got)
	}
}

// TestFailures: a store that fails costs its own client the update, and nobody else.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	bad := w.Sim.Table.Addr(7)
	came, pass := gate(t, w)
	sites := 0
	w.Fault = func(st poke.Step, patch int32) error {
		if !st.Undo && sites > 1 && patch == 1 { // only merged ones have a second patch
			return poke.ErrInjected
		}
		return nil
	}
	s, _ := w.start(t)
	first, err := s.Submit(t.Context(), enable("x", "fn0"))
	if err != nil {
		t.Fatal(err)
	}
	<-came
	sites = 2
	var ids []int64
	for _, r := range []Request{enable("a", "fn1"), enable("b", bad.String(), "fn9"), enable("c", "fn3")} {
		u, err := s.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, u.ID)
	}
	close(pass)
	for i, want := range []State{journal.Live, journal.Failed, journal.Live} {
		u, err := s.Wait(t.Context(), ids[i])
		if err != nil || u.State != want || (u.Error != "") != (want == journal.Failed) {
			t.Errorf("%+v, %v, want %s", u, err, want)
		}
	}
	if got := enabled(t, s); !slices.Equal(got, []int{0, 1, 3}) {
		t.Errorf("enabled are %v", got)
	}
	if u, err := s.Wait(t.Context(), first.ID); err != nil || u.State != journal.Live {
		t.Errorf("%+v, %v", u, err)
	}
}
