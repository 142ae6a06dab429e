// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitersShareAnUpdate: the requests of k clients that come while an update
// is held up are one more update.
func TestWaitersShareAnUpdate(t *testing.T) {
	for _, k := range []int{1, 2, 10, 500} {
		bubble(t, k+1, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
			first := submit(t, c, enable("first", 0))
			var rest []*Ticket
			var want []int
			for i := range k {
				rest = append(rest, submit(t, c, enable(fmt.Sprint("client", i), k-i)))
				want = append(want, i+1)
			}
			wantCalls(t, x, on(0))
			wantWaiting(t, first)
			x.release(1)
			wantErr(t, first, nil)
			wantCalls(t, x, on(0), on(want...))
			wantWaiting(t, rest[0])
			x.release(1)
			for _, ticket := range rest {
				wantErr(t, ticket, nil)
			}
			wantCalls(t, x, on(0), on(want...))
			wantStats(t, c, Stats{Requests: uint64(k + 1), Updates: 2, Changes: uint64(k + 1)})
		})
	}
}

// TestClients: a client counts from its first wish to its last.
func TestClients(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		for i, r := range []Request{enable("a", 1), enable("b", 1), disable("a", 1), disable("b", 1)} {
			ticket := submit(t, c, r)
			if i%3 == 0 { // the first and the last wish change the text
				x.release(1)
			}
			wantErr(t, ticket, nil)
			if n, want := c.Clients(), []int{1, 2, 1, 0}[i]; n != want {
				t.Errorf("after %d requests: %d clients, want %d", i+1, n, want)
			}
		}
	})
}

// TestGather: an update waits for company, just so long, and not when closed.
func TestGather(t *testing.T) {
	const gather = 20 * time.Millisecond
	bubble(t, 4, Config{Gather: gather}, func(t *testing.T, x *fakeText, c *Coordinator) {
		submit(t, c, enable("a", 0))
		time.Sleep(gather - 1)
		submit(t, c, enable("b", 1))
		wantCalls(t, x)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantCalls(t, x, on(0, 1))
		submit(t, c, enable("c", 2))
		x.release(1)
		wantCalls(t, x, on(0, 1))
		time.Sleep(gather)
		synctest.Wait()
		wantCalls(t, x, on(0, 1), on(2))
		x.release(1)
		submit(t, c, enable("d", 3))
		begin := time.Now()
		go func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		if wantCalls(t, x, on(0, 1), on(2), on(3)); time.Since(begin) != 0 {
			t.Errorf("Close waited %v for company", time.Since(begin))
		}
	})
}

// TestNothingToDo: what is so already, and what requests undo for each other,
// needs no update.
func TestNothingToDo(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		submit(t, c, enable("a", 1, 2))
		x.release(1)
		wantCalls(t, x, on(1, 2))
		for _, r := range []Request{
			enable("a", 1), enable("a", 2, 2, 1), disable("a", 3), disable("b", 1), enable("b", 1), disable("a", 1), enable("a"),
		} {
			wantErr(t, submit(t, c, r), nil)
		}
		wantCalls(t, x, on(1, 2)) // b wants record 1 now
		submit(t, c, enable("a", 0))
		opposite := []*Ticket{
			submit(t, c, enable("c", 5, 6)), submit(t, c, disable("c", 6, 5)), // its own wish
			submit(t, c, disable("b", 1)), submit(t, c, enable("d", 1)), // another's
		}
		x.release(1)
		for _, ticket := range opposite {
			wantErr(t, ticket, nil)
		}
		wantCalls(t, x, on(1, 2), on(0))
		submit(t, c, disable("d", 1, 2))
		wantCalls(t, x, on(1, 2), on(0), off(1)) // a still wants record 2
	})
}

// TestBadRecordThatIsTakenBack harms nobody: requests undid it among themselves.
func TestBadRecordThatIsTakenBack(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		x.bad = 4
		submit(t, c, enable("first", 0))
		all := []*Ticket{
			submit(t, c, enable("a", 1, 2)), submit(t, c, enable("b", 2, 4, 6)),
			submit(t, c, disable("a", 2)), submit(t, c, disable("b", 4)),
		}
		x.release(2)
		for _, ticket := range all {
			wantErr(t, ticket, nil)
		}
		wantCalls(t, x, on(0), on(1, 2, 6))
		wantStats(t, c, Stats{Requests: 5, Updates: 2, Changes: 4})
	})
}

// TestOneBadRequest: a merged update that fails is tried request by request, and
// only the guilty one fails, with all of its records.
func TestOneBadRequest(t *testing.T) {
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		x.bad = 4
		submit(t, c, enable("first", 0))
		a := submit(t, c, enable("a", 1, 2))
		b := submit(t, c, enable("b", 2, 4, 6))
		d := submit(t, c, enable("d", 6))
		x.release(5)
		wantErr(t, a, nil)
		wantErr(t, b, errBad)
		wantErr(t, d, nil)
		wantCalls(t, x, on(0), on(1, 2, 4, 6), on(1, 2), on(4, 6), on(6))
		wantStats(t, c, Stats{Requests: 4, Updates: 5, Failed: 2, Changes: 4})
		wantErr(t, submit(t, c, disable("b", 2, 4, 6)), nil) // it has none of them
		submit(t, c, disable("a", 2))
		wantCalls(t, x, on(0), on(1, 2, 4, 6), on(1, 2), on(4, 6), on(6), off(2))
	})
}

// TestFailsAlone: a request that was alone is not tried twice.
func TestFailsAlone(t *testing.T) {
	bubble(t, 3, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		x.bad = 1
		a := submit(t, c, enable("a", 0, 1))
		x.release(1)
		wantErr(t, a, errBad)
		wantStats(t, c, Stats{Requests: 1, Updates: 1, Failed: 1})
		submit(t, c, enable("a", 0))
		wantCalls(t, x, on(0, 1), on(0))
	})
}

func TestCancel(t *testing.T) {
	bubble(t, 3, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		a := submit(t, c, enable("a", 0))
		b := submit(t, c, enable("b", 1))
		d := submit(t, c, enable("d", 2))
		if a.Cancel() {
			t.Error("cancelled what is being carried out")
		}
		if !b.Cancel() {
			t.Error("did not cancel what waits")
		}
		wantErr(t, b, ErrCancelled)
		if b.Cancel() {
			t.Error("cancelled twice")
		}
		wantStats(t, c, Stats{Requests: 1, Updates: 1})
		x.release(2)
		wantErr(t, a, nil)
		wantErr(t, d, nil)
		wantErr(t, b, ErrCancelled)
		if a.Cancel() {
			t.Error("cancelled what is done")
		}
		wantCalls(t, x, on(0), on(2))
		wantStats(t, c, Stats{Requests: 3, Updates: 2, Changes: 2})
	})
}

// TestMaxWait: a request that nobody takes up is answered when its time is up,
// not when somebody comes by. One that was taken up has all the time it needs.
func TestMaxWait(t *testing.T) {
	const wait = 50 * time.Millisecond
	bubble(t, 3, Config{MaxWait: wait}, func(t *testing.T, x *fakeText, c *Coordinator) {
		a := submit(t, c, enable("a", 0))
		b := submit(t, c, enable("b", 1))
		time.Sleep(wait - 1)
		d := submit(t, c, enable("d", 2))
		wantWaiting(t, b)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantErr(t, b, ErrExpired)
		wantWaiting(t, a)
		wantWaiting(t, d)
		if b.Cancel() {
			t.Error("cancelled what has expired")
		}
		x.release(1)
		wantErr(t, a, nil)
		time.Sleep(10 * wait)
		synctest.Wait()
		wantWaiting(t, d)
		x.release(1)
		wantErr(t, d, nil)
		wantCalls(t, x, on(0), on(2))
		wantStats(t, c, Stats{Requests: 3, Updates: 2, Changes: 2})
	})
}

// TestDo waits for the answer, and withdraws what it can when it may not wait.
func TestDo(t *testing.T) {
	errEnough := errors.New("enough")
	bubble(t, 9, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		x.bad = 4
		answers := map[string]error{}
		do := func(ctx context.Context, r Request) {
			go func() { answers[r.Client] = c.Do(ctx, r) }()
			synctest.Wait()
		}
		ctx, enough := context.WithCancelCause(t.Context())
		do(ctx, enable("a", 0))
		do(ctx, enable("b", 1))
		do(t.Context(), enable("c", 2))
		do(t.Context(), enable("d", 99))
		enough(errEnough)
		synctest.Wait()
		do(ctx, enable("e", 3))
		if len(answers) != 3 || answers["b"] != errEnough || answers["d"] == nil || answers["e"] != errEnough {
			t.Errorf("answers %v: want b and e withdrawn, d refused, and no others", answers)
		}
		x.release(2)
		do(t.Context(), enable("f", 4))
		x.release(1)
		if len(answers) != 6 || answers["a"] != nil || answers["c"] != nil || answers["f"] != errBad {
			t.Errorf("answers %v: want a and c done, f bad", answers)
		}
		wantCalls(t, x, on(0), on(2), on(4))
	})
}

func TestSubmitRefusesUnknownRecords(t *testing.T) {
	bubble(t, 3, Config{}, func(t *testing.T, x *fakeText, c *Coordinator) {
		for _, rec := range []int{-1, 3, 1 << 40} {
			ticket, err := c.Submit(t.Context(), enable("a", 0, rec))
			want := fmt.Sprintf("client a: record %d: there are 3", rec)
			if ticket != nil || err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		synctest.Wait()
		wantCalls(t, x)
		wantStats(t, c, Stats{})
	})
}

// TestDeadlineWasOver: what comes with a deadline that is over expires, always: no
// update takes it up before a timer does. The clock is the real one, as in a bubble
// timers come first.
func TestDeadlineWasOver(t *testing.T) {
	x := newFake(9)
	c := started(t, t.Context(), Config{Records: 9, Apply: x.apply, Queue: 1000})
	var all []*Ticket
	for range 1000 {
		r := enable("a", 0)
		r.Deadline = time.Now()
		ticket, err := c.Submit(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ticket)
	}
	for _, ticket := range all {
		if <-ticket.Done(); ticket.Err() != ErrExpired {
			t.Fatalf("%v, want %v", ticket.Err(), ErrExpired)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, x)
}

// TestSubmitEach: what is handed in together is taken up together, also where there is not
// room for all at once and others come in between; each is a request by itself all the same.
func TestSubmitEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFake(40)
		x.bad = 7
		var sizes []int
		c := x.start(t, Config{Queue: 2, Listener: Listener{Began: func(_ time.Time, ts []*Ticket) {
			sizes = append(sizes, len(ts))
		}}})
		var rs []Request
		for i := range 20 {
			rs = append(rs, enable(fmt.Sprint("client", i), i))
		}
		rs[7].Records = nil
		ts, err := c.SubmitEach(t.Context(), rs...)
		if err != nil || len(ts) != len(rs) {
			t.Fatalf("%d tickets, %v", len(ts), err)
		}
		synctest.Wait()
		for _, ticket := range ts {
			wantErr(t, ticket, nil)
		}
		if !slices.Equal(sizes, []int{20}) {
			t.Errorf("updates of %v requests, want one of 20", sizes)
		}
		ts, err = c.SubmitEach(t.Context(), enable("a", 30), enable("b", 7), enable("c", 31))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantErr(t, ts[0], nil)
		wantErr(t, ts[1], errBad)
		wantErr(t, ts[2], nil)
		if ts, err := c.SubmitEach(t.Context(), enable("a", 1), enable("b", 40)); err == nil || ts != nil {
			t.Errorf("%v, %v: there is no record 40", ts, err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ts, err := c.SubmitEach(t.Context(), rs...); !errors.Is(err, ErrClosed) || ts != nil {
			t.Errorf("%v, %v: it is closed", ts, err)
		}
		x.settled(t, c)
	})
}
