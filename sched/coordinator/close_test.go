// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// knocker is a client that stands in Submit.
type knocker struct {
	ticket *Ticket
	err    error
	in     atomic.Bool // Submit came back
}

func (k *knocker) String() string {
	return fmt.Sprintf("came back: %t, ticket %t, error %v", k.in.Load(), k.ticket != nil, k.err)
}

func knock(ctx context.Context, c *Coordinator, r Request) *knocker {
	k := &knocker{}
	go func() {
		k.ticket, k.err = c.Submit(ctx, r)
		k.in.Store(true)
	}()
	synctest.Wait()
	return k
}

// fill holds an update up and fills the queue behind it.
func fill(t *testing.T, c *Coordinator, queue int) []*Ticket {
	t.Helper()
	var all []*Ticket
	for i := range queue + 1 {
		all = append(all, submit(t, c, enable(fmt.Sprint("client", i), i)))
	}
	return all
}

// TestQueueBound: in front of a full queue Submit blocks, until there is room,
// or its ctx ends. An update takes up a full queue and the one whose request made
// it begin, and leaves the rest to the next, so that none grows without end.
func TestQueueBound(t *testing.T) {
	errEnough := errors.New("enough")
	bubble(t, 9, Config{Queue: 3}, func(t *testing.T, x *fakeText, c *Coordinator) {
		fill(t, c, 3)
		ctx, enough := context.WithCancelCause(t.Context())
		a, b := knock(ctx, c, enable("a", 4)), knock(t.Context(), c, enable("b", 5))
		d := knock(t.Context(), c, enable("d", 6))
		time.Sleep(time.Hour)
		synctest.Wait()
		if a.in.Load() || b.in.Load() || d.in.Load() {
			t.Fatal("Submit came back from a full queue")
		}
		enough(errEnough)
		synctest.Wait()
		if !a.in.Load() || a.err != errEnough || a.ticket != nil || b.in.Load() {
			t.Errorf("after its ctx ended: %+v, the other %+v", a, b)
		}
		x.release(1)
		if !b.in.Load() || b.err != nil || !d.in.Load() || d.err != nil {
			t.Fatalf("there is room: %+v, %+v", b, d)
		}
		x.release(1)
		wantErr(t, b.ticket, nil)
		wantWaiting(t, d.ticket)
		x.release(1)
		wantErr(t, d.ticket, nil)
		wantCalls(t, x, on(0), on(1, 2, 3, 5), on(6))
		wantStats(t, c, Stats{Requests: 6, Updates: 3, Changes: 6})
	})
}

// TestQueueDefault is 1024 requests, and one being carried out.
func TestQueueDefault(t *testing.T) {
	bubble(t, 1030, Config{}, func(t *testing.T, _ *fakeText, c *Coordinator) {
		fill(t, c, 1024)
		if k := knock(t.Context(), c, enable("late", 1029)); k.in.Load() {
			t.Error("a queue of 1024 took one more")
		}
	})
}

// TestExpiresAtTheDoor: the time in front of a full queue counts as well.
func TestExpiresAtTheDoor(t *testing.T) {
	const wait = time.Second
	bubble(t, 9, Config{Queue: 1, MaxWait: wait}, func(t *testing.T, x *fakeText, c *Coordinator) {
		fill(t, c, 1)
		k := knock(t.Context(), c, enable("a", 4))
		time.Sleep(wait - 1)
		synctest.Wait()
		if k.in.Load() {
			t.Fatalf("before its time was up: %+v", k)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !k.in.Load() || k.err != nil {
			t.Fatalf("when its time was up: %+v", k)
		}
		wantErr(t, k.ticket, ErrExpired)
		x.release(1)
		wantCalls(t, x, on(0))
		wantStats(t, c, Stats{Requests: 3, Updates: 1, Changes: 1})
	})
}

// TestSubmitWithoutTime: a ctx that has ended is refused always, not now and
// then.
func TestSubmitWithoutTime(t *testing.T) {
	errEnough := errors.New("enough")
	bubble(t, 1, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		ctx, enough := context.WithCancelCause(t.Context())
		enough(errEnough)
		for range 50 {
			if ticket, err := c.Submit(ctx, enable("a", 0)); ticket != nil || err != errEnough {
				t.Fatalf("%v, %v, want %v", ticket, err, errEnough)
			}
		}
		synctest.Wait()
		wantCalls(t, x)
	})
}

// TestCloseDrains: what waits is carried out, what comes is refused, and Close
// returns when all is done.
func TestCloseDrains(t *testing.T) {
	bubble(t, 9, Config{Queue: 3}, func(t *testing.T, x *fakeText, c *Coordinator) {
		all := fill(t, c, 3)
		late := knock(t.Context(), c, enable("late", 5))
		closed := false
		go func() {
			if err := c.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
			closed = true
		}()
		synctest.Wait()
		if !late.in.Load() || late.err != ErrClosed || late.ticket != nil {
			t.Errorf("in front of the queue: %+v, want %v", late, ErrClosed)
		}
		if closed {
			t.Error("closed while an update runs")
		}
		x.release(1)
		if closed {
			t.Error("closed while requests wait")
		}
		if k := knock(t.Context(), c, enable("later", 6)); k.err != ErrClosed {
			t.Errorf("after Close began: %+v, want %v", k, ErrClosed)
		}
		x.release(1)
		for _, ticket := range all {
			wantErr(t, ticket, nil)
		}
		if !closed {
			t.Error("not closed, and all is done")
		}
		if err := c.Do(t.Context(), enable("latest", 7)); err != ErrClosed {
			t.Errorf("after Close: %v, want %v", err, ErrClosed)
		}
		wantCalls(t, x, on(0), on(1, 2, 3))
		wantStats(t, c, Stats{Requests: 4, Updates: 2, Changes: 4})
	})
}

// TestCloseWithoutTime: when its ctx ends, Close cancels the update that runs,
// and no other begins.
func TestCloseWithoutTime(t *testing.T) {
	const grace = time.Minute
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		all := fill(t, c, 3)
		ctx, cancel := context.WithTimeout(t.Context(), grace)
		defer cancel()
		begin := time.Now()
		if err := c.Close(ctx); err != context.DeadlineExceeded {
			t.Errorf("Close: %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(begin); took != grace {
			t.Errorf("Close took %v, want %v", took, grace)
		}
		for _, ticket := range all {
			wantErr(t, ticket, ErrClosed)
		}
		wantErr(t, all[0], context.Canceled) // what the update said
		if x.cause != ErrClosed {
			t.Errorf("the update was cancelled by %v, want %v", x.cause, ErrClosed)
		}
		wantCalls(t, x, on(0))
		wantStats(t, c, Stats{Requests: 4, Updates: 1, Failed: 1})
	})
}

// TestCancelledMergeIsNotRetried, as it would only be cancelled again.
func TestCancelledMergeIsNotRetried(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		all := fill(t, c, 3)
		x.release(1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Close(ctx); err != context.Canceled {
			t.Errorf("Close: %v, want %v", err, context.Canceled)
		}
		wantErr(t, all[0], nil)
		for _, ticket := range all[1:] {
			wantErr(t, ticket, ErrClosed)
			wantErr(t, ticket, context.Canceled) // what the update said
		}
		wantCalls(t, x, on(0), on(1, 2, 3))
		wantStats(t, c, Stats{Requests: 4, Updates: 2, Failed: 1, Changes: 1})
	})
}

// TestCancelledBetweenRetries: of a merged update that is tried one by one, the
// rest is not tried once the coordinator ends.
func TestCancelledBetweenRetries(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		x.bad = 3
		all := fill(t, c, 3)
		x.release(3) // the first, all others, and one by itself
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Close(ctx); err != context.Canceled {
			t.Errorf("Close: %v, want %v", err, context.Canceled)
		}
		wantErr(t, all[1], nil)
		wantErr(t, all[2], ErrClosed)
		wantErr(t, all[3], ErrClosed)
		wantCalls(t, x, on(0), on(1, 2, 3), on(1), on(2))
	})
}

// TestContextEnds is the same without anybody who calls Close: the coordinator
// leaves nothing behind, which the bubble sees.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		x := newFake(9).held()
		c := started(t, ctx, Config{Records: 9, Apply: x.apply, Queue: 3})
		all := fill(t, c, 3)
		late := knock(t.Context(), c, enable("late", 5))
		cancel()
		synctest.Wait()
		for _, ticket := range all {
			wantErr(t, ticket, ErrClosed)
		}
		if late.err != ErrClosed && (late.ticket == nil || late.ticket.Err() != ErrClosed) {
			t.Errorf("in front of the queue: %+v, want %v", late, ErrClosed)
		}
		if _, err := c.Submit(t.Context(), enable("later", 5)); err != ErrClosed {
			t.Errorf("after it ended: %v, want %v", err, ErrClosed)
		}
		wantCalls(t, x, on(0))
		x.settled(t, c)
	})
}

// TestContextEndsWhileIdle: there is nothing to do, and nobody stays.
func TestContextEndsWhileIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := started(t, ctx, Config{Records: 9, Apply: newFake(9).apply})
		cancel()
		synctest.Wait()
		if _, err := c.Submit(t.Context(), enable("late", 5)); err != ErrClosed {
			t.Errorf("%v, want %v", err, ErrClosed)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestCloseOften: any number of them, at the same time.
func TestCloseOften(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		fill(t, c, 2)
		done := 0
		results := make(chan error)
		for range 5 {
			go func() { results <- c.Close(t.Context()) }()
		}
		synctest.Wait()
		x.release(2)
		for done < 5 {
			if err := <-results; err != nil {
				t.Errorf("Close: %v", err)
			}
			done++
		}
	})
}
