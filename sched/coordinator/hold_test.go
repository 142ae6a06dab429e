// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestStepAside: who waits for what is its client's alone holds nobody else up, but those of its client.
func TestStepAside(t *testing.T) {
	var told atomic.Pointer[[]int64]
	cfg := Config{Listener: Listener{Held: func(ts []*Ticket, _ time.Time) {
		var ids []int64
		for _, t := range ts {
			ids = append(ids, t.Requests()[0].ID)
		}
		told.Store(&ids)
	}}}
	cfg.Admit = func(at time.Time, ts []*Ticket, _ func(int) []Change) (int, time.Time, bool) {
		n := slices.IndexFunc(ts, func(t *Ticket) bool { return t.Requests()[0].Client == "a" })
		if n < 0 {
			return len(ts), at, false
		}
		return n, at.Add(time.Hour), true
	}
	bubble(t, 10, cfg, func(t *testing.T, x *fakeText, c *Coordinator) {
		var ts []*Ticket
		for i, client := range []string{"a", "b", "a", "c"} {
			r := enable(client, i)
			r.ID = int64(i)
			ts = append(ts, submit(t, c, r))
			synctest.Wait()
		}
		free := submit(t, c, disable("d", 9))
		x.release(2)
		wantCalls(t, x, on(1), on(3))
		wantErr(t, ts[1], nil)
		wantErr(t, ts[3], nil)
		wantErr(t, free, nil)
		wantWaiting(t, ts[0])
		wantWaiting(t, ts[2])
		if got := *told.Load(); !slices.Equal(got, []int64{0, 2}) {
			t.Errorf("held %v", got)
		}
	})
}

// TestNothingByItself: of two clients that disable what both have enabled, each switches nothing, and both together do:
// the second is held.
func TestNothingByItself(t *testing.T) {
	var closed atomic.Bool
	cfg := Config{Admit: func(at time.Time, ts []*Ticket, changes func(int) []Change) (n int, until time.Time, alone bool) {
		for n < len(ts) && (!closed.Load() || len(changes(n+1)) == 0) {
			n++
		}
		return n, at.Add(time.Hour), false
	}}
	bubble(t, 10, cfg, func(t *testing.T, x *fakeText, c *Coordinator) {
		both := submit(t, c, enable("a", 1))
		synctest.Wait()
		x.release(1)
		wantErr(t, both, nil)
		wantErr(t, submit(t, c, enable("b", 1)), nil)
		closed.Store(true)
		ts, err := c.SubmitEach(t.Context(), disable("a", 1), disable("b", 1))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantErr(t, ts[0], nil)
		wantWaiting(t, ts[1])
		wantCalls(t, x, on(1))
	})
}

// TestHeld: what Admit does not let through waits until the time that it names, or the next request; the earliest
// deadline first, those of one client as they came; and it may be cancelled, expire, and be left by Close.
func TestHeld(t *testing.T) {
	var mu sync.Mutex            // of what the coordinator's goroutine uses, too
	open, room := time.Time{}, 0 // from when how many may go at a time
	var asked, told []int64      // last
	locked := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
	ids := func(ts []*Ticket) (ids []int64) {
		for _, t := range ts {
			ids = append(ids, t.Requests()[0].ID)
		}
		return ids
	}
	cfg := Config{Listener: Listener{Held: func(ts []*Ticket, _ time.Time) { locked(func() { told = ids(ts) }) }}}
	cfg.Admit = func(at time.Time, ts []*Ticket, changes func(int) []Change) (int, time.Time, bool) {
		mu.Lock()
		defer mu.Unlock()
		asked = ids(ts)
		if n := len(ts); len(changes(n)) > n || len(changes(0)) > 0 {
			t.Errorf("%d requests switch %v", n, changes(n))
		}
		if at.Before(open) {
			return 0, open, false
		}
		return min(room, len(ts)), at.Add(time.Hour), false
	}
	bubble(t, 10, cfg, func(t *testing.T, x *fakeText, c *Coordinator) {
		start := time.Now()
		locked(func() { open, room = start.Add(100*time.Millisecond), 2 })
		ask := func(id int64, client string, within time.Duration) *Ticket {
			r := enable(client, int(id))
			if r.ID = id; within > 0 {
				r.Deadline = start.Add(within)
			}
			return submit(t, c, r)
		}
		late, first := ask(1, "a", 0), ask(2, "b", 3*time.Hour)
		soon, same := ask(3, "c", 2*time.Hour), ask(4, "a", time.Hour) // of which client's the first has no later one
		expires, gone := ask(5, "d", 50*time.Millisecond), ask(6, "e", 0)
		synctest.Wait()
		if !gone.Cancel() {
			t.Error("what is held cannot be cancelled")
		}
		locked(func() {
			if !slices.Equal(asked, []int64{5, 1, 4, 3, 2, 6}) {
				t.Errorf("in the order %v", asked)
			}
		})
		time.Sleep(60 * time.Millisecond)
		wantErr(t, gone, ErrCancelled)
		wantErr(t, expires, ErrExpired)
		wantCalls(t, x)
		time.Sleep(40 * time.Millisecond)
		x.release(1)
		wantErr(t, late, nil)
		wantErr(t, same, nil)
		wantCalls(t, x, on(1, 4))
		wantWaiting(t, soon)
		locked(func() {
			if room = 0; !slices.Equal(told, []int64{3, 2}) {
				t.Errorf("held %v", told)
			}
		})
		free, behind := submit(t, c, disable("f", 9)), submit(t, c, disable("b", 9))
		wantErr(t, free, nil)
		wantWaiting(t, behind)
		locked(func() { room = 1 })
		time.Sleep(again) // though an hour was named: a clock may be set
		x.release(1)
		wantErr(t, soon, nil)
		locked(func() { room = 0 })
		last := ask(7, "b", 0)
		if err := c.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		wantErr(t, first, ErrClosed)
		wantErr(t, last, ErrClosed)
	})
}
