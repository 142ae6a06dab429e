// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlinesAreTheClocks: a process that was stopped goes on with timers that have
// not run; nothing is taken up whose deadline is over all the same.
func TestDeadlinesAreTheClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64 // nanoseconds that the clock went on and no timer saw
		now := func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
		x := newFake(4).held()
		var began []int64
		c := x.start(t, Config{Now: now, Listener: Listener{Began: func(at time.Time, ts []*Ticket) {
			for _, tt := range ts {
				r := tt.Requests()[0]
				began = append(began, r.ID)
				if !at.Before(r.Deadline) {
					t.Errorf("request %d began at %v, after its deadline %v", r.ID, at, r.Deadline)
				}
			}
		}}})
		ask := func(id int64, within time.Duration) *Ticket {
			ticket, err := c.Submit(t.Context(), Request{Client: "a", Enable: true, Records: []int{int(id)}, ID: id,
				Deadline: now().Add(within)})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return ticket
		}
		first, short, long := ask(0, time.Minute), ask(1, time.Minute), ask(2, time.Hour)
		stopped.Store(int64(time.Minute))
		x.release(2)
		<-long.Done()
		if err := short.Err(); !errors.Is(err, ErrExpired) || first.Err() != nil || long.Err() != nil {
			t.Errorf("%v, %v, %v, want ErrExpired for the second alone", first.Err(), err, long.Err())
		}
		if !slices.Equal(began, []int64{0, 2}) {
			t.Errorf("%v began, want 0 and 2", began)
		}
	})
}

// thinkers is clients that think for a while whenever they were answered; it returns the
// requests that each update carried.
func thinkers(t *testing.T, cfg Config, update time.Duration, think []time.Duration, rounds int) (sizes []int,
	took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		cfg.Records = len(think)
		cfg.Apply = func(context.Context, []Change) error { time.Sleep(update); return nil }
		cfg.Listener.Began = func(_ time.Time, ts []*Ticket) { sizes = append(sizes, len(ts)) }
		c := started(t, t.Context(), cfg)
		done := make(chan error, len(think))
		for i, pause := range think {
			go func() {
				var err error
				for n := 0; n < rounds && err == nil; n++ {
					time.Sleep(pause)
					err = c.Do(t.Context(), Request{Client: string(rune('a' + i)), Enable: n%2 == 0, Records: []int{i}})
				}
				done <- err
			}()
		}
		for range think {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		took = time.Since(begun)
	})
	return sizes, took
}

// TestLinger: clients that take a while to ask again share every update, where
// without it they fall into halves; and it takes them less time, not more.
func TestLinger(t *testing.T) {
	const rounds, update = 50, time.Millisecond
	think := make([]time.Duration, 16)
	for i := range think {
		think[i] = time.Duration(i+1) * 100 * time.Microsecond // the slowest: more than an update takes
	}
	apart, slow := thinkers(t, Config{}, update, think, rounds)
	together, fast := thinkers(t, Config{Linger: 4}, update, think, rounds)
	if len(together) > rounds+3 {
		t.Errorf("%d updates for %d requests of each client: %v", len(together), rounds, together)
	}
	if len(apart) < len(together)*3/2 {
		t.Errorf("%d updates without it: there is nothing to gain here", len(apart))
	}
	t.Logf("%d updates in %v, without it %d in %v", len(together), fast, len(apart), slow)
}

// TestAloneNeverWaits: a client that is alone is carried out at once, whatever it
// lingers; and when all others have gone it waits once, no longer than said.
func TestAloneNeverWaits(t *testing.T) {
	const rounds, update = 20, time.Millisecond
	_, took := thinkers(t, Config{Linger: 1000}, update, []time.Duration{0}, rounds)
	if took != rounds*update {
		t.Errorf("%v for %d updates of %v", took, rounds, update)
	}
	synctest.Test(t, func(t *testing.T) {
		x := newFake(4).held()
		c := x.start(t, Config{Linger: 4})
		ask := func(n int) *Ticket {
			ticket, err := c.Submit(t.Context(), Request{Client: string(rune('a' + n)), Enable: true, Records: []int{n}})
			if err != nil {
				t.Fatal(err)
			}
			return ticket
		}
		ask(0)
		synctest.Wait()
		ask(1)
		time.Sleep(time.Second) // which it takes
		x.release(1)
		begun := time.Now()
		calls := func() int {
			synctest.Wait()
			x.mu.Lock()
			defer x.mu.Unlock()
			return len(x.calls)
		}
		time.Sleep(time.Second)
		if n := calls(); n != 1 {
			t.Errorf("%d updates began: one more request was expected", n)
		}
		time.Sleep(4 * time.Second)
		if calls() != 2 {
			t.Errorf("%v after the last update's end it still waits", time.Since(begun))
		}
		x.release(1)
		synctest.Wait()
	})
}

// TestWhoIsToldIsNoCompany: a request that a client makes as soon as it is told how the
// last one ended did not wait at that one's end, however soon it comes.
func TestWhoIsToldIsNoCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rounds, update = 20, time.Millisecond
		var c *Coordinator
		n, last := 0, make(chan *Ticket, 1)
		ask := func() {
			n++
			enough := n == rounds
			ticket, err := c.Submit(t.Context(), Request{Client: "a", Enable: n%2 != 0, Records: []int{0}})
			if err != nil {
				t.Error(err)
			}
			if enough {
				last <- ticket
			}
		}
		begun := time.Now()
		c = started(t, t.Context(), Config{Records: 1, Linger: 1000,
			Apply: func(context.Context, []Change) error { time.Sleep(update); return nil },
			Listener: Listener{Ended: func(End) {
				if n < rounds {
					ask()
				}
			}}})
		ask()
		<-(<-last).Done()
		if took := time.Since(begun); took != rounds*update {
			t.Errorf("%v for %d updates of %v", took, rounds, update)
		}
	})
}

// TestLingerEndsWithClose: who closes does not wait for company.
func TestLingerEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFake(4)
		c := x.start(t, Config{Linger: 1e9})
		c.last = last{at: time.Now(), took: time.Hour, expected: 3}
		ticket, err := c.Submit(t.Context(), Request{Client: "a", Enable: true, Records: []int{1}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		begun := time.Now()
		if err := c.Close(t.Context()); err != nil || ticket.Err() != nil {
			t.Errorf("%v, %v", err, ticket.Err())
		}
		if d := time.Since(begun); d != 0 {
			t.Errorf("closing took %v", d)
		}
	})
}
