// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// crowdSize is how many clients talk at once.
const crowdSize = 8

// crowd is clients that all talk at once.
type crowd struct {
	c       *Coordinator
	records int
	each    int // requests of a client
}

// talk is one client: it waits for its answers, or goes on, or thinks better of
// it. In the end it knows what it wants: what was answered with nil, in order.
func (w *crowd) talk(ctx context.Context, client string, seed uint64) (map[int]bool, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var tickets []*Ticket
	for range w.each {
		r := Request{Client: client, Enable: rng.IntN(2) == 0}
		for range rng.IntN(6) {
			r.Records = append(r.Records, rng.IntN(w.records))
		}
		ticket, err := w.c.Submit(ctx, r)
		if err != nil {
			return nil, err
		}
		tickets = append(tickets, ticket)
		switch rng.IntN(4) {
		case 0:
			<-ticket.Done()
		case 1:
			if ticket.Cancel() && ticket.Err() != ErrCancelled {
				return nil, fmt.Errorf("%v: cancelled with %v", r, ticket.Err())
			}
		}
	}
	mine := map[int]bool{}
	for _, ticket := range tickets {
		<-ticket.Done()
		switch err := ticket.Err(); {
		case err == nil:
			for _, rec := range ticket.requests[0].Records {
				mine[rec] = ticket.requests[0].Enable
			}
		case err != ErrCancelled && !errors.Is(err, errBad):
			return nil, fmt.Errorf("%v: %w", ticket.requests[0], err)
		}
	}
	return mine, nil
}

// TestCrowd: whatever meets whatever, in the end a record is live if a client
// wants it, by that client's own order.
func TestCrowd(t *testing.T) {
	const records = 40
	rounds, each := 5, 200
	if *long {
		rounds, each = 100, 1000
	}
	for round := range rounds {
		x := newFake(records)
		x.bad = round % 3 * 7
		var inside atomic.Int32
		apply := func(ctx context.Context, cs []Change) error {
			if inside.Add(1) != 1 {
				t.Error("two updates at a time")
			}
			defer inside.Add(-1)
			for range len(cs) {
				runtime.Gosched()
			}
			return x.apply(ctx, cs)
		}
		w := &crowd{started(t, t.Context(), Config{Records: records, Apply: apply, Queue: 1 + round}), records, each}
		wanted := make([]bool, records)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range crowdSize {
			wg.Go(func() {
				mine, err := w.talk(t.Context(), fmt.Sprint("client", i), uint64(round*crowdSize+i))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for rec, want := range mine {
					wanted[rec] = wanted[rec] || want
				}
			})
		}
		wg.Wait()
		if err := w.c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		x.settled(t, w.c)
		checkCrowd(t, w, x, wanted)
	}
}

func checkCrowd(t *testing.T, w *crowd, x *fakeText, wanted []bool) {
	t.Helper()
	for rec, want := range wanted {
		if w.c.Snapshot().Live(rec) != want {
			t.Errorf("record %d is live: %t, wanted: %t", rec, !want, want)
		}
	}
	s := w.c.Stats()
	var changes uint64
	for _, call := range x.calls {
		changes += uint64(len(call))
	}
	if want := uint64(crowdSize * w.each); s.Requests != want || s.Updates != uint64(len(x.calls)) {
		t.Errorf("%+v, want %d requests, %d updates", s, want, len(x.calls))
	}
	if s.Failed > s.Updates || s.Changes > changes || s.Failed == 0 && s.Changes != changes {
		t.Errorf("%+v, and updates had %d changes", s, changes)
	}
	if s.Updates == 0 {
		t.Error("no update at all")
	}
}
