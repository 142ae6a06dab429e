// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBad = errors.New("bad record")

// fakeText is what changes are applied to. It looks at all that it gets.
type fakeText struct {
	mu    sync.Mutex
	live  []bool
	calls [][]Change
	bad   int           // no update with this record succeeds; -1: none
	hold  chan struct{} // unless nil, an update waits for one of these or for its ctx
	cause error         // of the ctx that ended an update
	wrong error         // what was wrong with a call
}

func newFake(records int) *fakeText { return &fakeText{live: make([]bool, records), bad: -1} }

// held makes updates wait for release.
func (x *fakeText) held() *fakeText {
	x.hold = make(chan struct{})
	return x
}

// release lets so many updates go, one after the other.
func (x *fakeText) release(updates int) {
	for range updates {
		x.hold <- struct{}{}
		synctest.Wait()
	}
}

func (x *fakeText) apply(ctx context.Context, cs []Change) error {
	x.note(cs)
	if x.hold != nil {
		select {
		case <-x.hold:
		case <-ctx.Done():
			x.cause = context.Cause(ctx)
			return ctx.Err()
		}
	}
	for _, c := range cs {
		if c.Record == x.bad {
			return errBad
		}
	}
	for _, c := range cs {
		x.live[c.Record] = c.Enable
	}
	return nil
}

func (x *fakeText) note(cs []Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, slices.Clone(cs))
	if err := x.check(cs); err != nil && x.wrong == nil {
		x.wrong = fmt.Errorf("update %d, %v: %w", len(x.calls), cs, err)
	}
}

// check: changes are there, in order, and real.
func (x *fakeText) check(cs []Change) error {
	if len(cs) == 0 {
		return errors.New("nothing to change")
	}
	for i, c := range cs {
		if i > 0 && cs[i-1].Record >= c.Record {
			return fmt.Errorf("record %d comes after %d", c.Record, cs[i-1].Record)
		}
		if x.live[c.Record] == c.Enable {
			return fmt.Errorf("record %d is so already", c.Record)
		}
	}
	return nil
}

// settled: nothing was wrong, and what the coordinator says is live is.
func (x *fakeText) settled(t testing.TB, c *Coordinator) {
	t.Helper()
	if x.wrong != nil {
		t.Error(x.wrong)
	}
	for rec, live := range x.live {
		if c.Snapshot().Live(rec) != live {
			t.Errorf("record %d is live: %t, in the text: %t", rec, c.Snapshot().Live(rec), live)
		}
	}
}

func (x *fakeText) start(t testing.TB, cfg Config) *Coordinator {
	cfg.Records, cfg.Apply = len(x.live), x.apply
	return started(t, t.Context(), cfg)
}

// started is a coordinator whose configuration is right.
func started(t testing.TB, ctx context.Context, cfg Config) *Coordinator {
	t.Helper()
	c, err := New(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bubble runs a test on a clock that moves when all wait, and fails if it leaves
// a goroutine behind.
func bubble(t *testing.T, records int, cfg Config, f func(t *testing.T, x *fakeText, c *Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := newFake(records).held()
		c := x.start(t, cfg)
		f(t, x, c)
		close(x.hold) // whatever still comes goes through
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		x.settled(t, c)
	})
}

func enable(client string, recs ...int) Request {
	return Request{Client: client, Enable: true, Records: recs}
}
func disable(client string, recs ...int) Request {
	return Request{Client: client, Enable: false, Records: recs}
}

// submit hands a request in that is not refused, and lets it settle.
func submit(t testing.TB, c *Coordinator, r Request) *Ticket {
	t.Helper()
	ticket, err := c.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("%v: %v", r, err)
	}
	synctest.Wait()
	return ticket
}

// wantErr looks at the answer of a request, which must be there.
func wantErr(t testing.TB, ticket *Ticket, want error) {
	t.Helper()
	select {
	case <-ticket.Done():
		if err := ticket.Err(); !errors.Is(err, want) {
			t.Errorf("%v: %v, want %v", ticket.requests, err, want)
		}
	default:
		t.Errorf("%v: not answered, want %v", ticket.requests, want)
	}
}

// wantWaiting: a request has no answer yet.
func wantWaiting(t testing.TB, ticket *Ticket) {
	t.Helper()
	select {
	case <-ticket.Done():
		t.Errorf("%v: answered with %v, want none yet", ticket.requests, ticket.Err())
	default:
	}
}

func wantCalls(t testing.TB, x *fakeText, want ...[]Change) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.EqualFunc(x.calls, want, slices.Equal) {
		t.Errorf("updates %v, want %v", x.calls, want)
	}
}

func wantStats(t testing.TB, c *Coordinator, want Stats) {
	t.Helper()
	if got := c.Stats(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// on and off are changes.
func on(recs ...int) []Change  { return changesTo(true, recs) }
func off(recs ...int) []Change { return changesTo(false, recs) }

func changesTo(enable bool, recs []int) []Change {
	var cs []Change
	for _, rec := range recs {
		cs = append(cs, Change{rec, enable})
	}
	return cs
}
