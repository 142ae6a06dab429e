// SPDX-License-Identifier: Apache-2.0

// Package coordinator merges the requests of many clients into few updates. In a kernel
// each client waits for text_mutex and pays for its own rounds. Here all requests that
// wait when an update begins share it, so that k clients cost the rounds of one.
//
// It stands by itself: records are numbers, and the caller's function switches them. The
// coordinator owns the clients' wishes, and hands out snapshots of them while it runs.
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The answers to requests that were not carried out.
var (
	ErrClosed    = errors.New("coordinator is closed")
	ErrCancelled = errors.New("request was cancelled while it waited")
	ErrExpired   = errors.New("request waited longer than allowed")
	// ErrUncommitted is what all requests get once Config.Commit has failed.
	ErrUncommitted = errors.New("the end of a request could not be committed")
)

// Config configures a Coordinator. Records and Apply must be there.
type Config struct {
	// Records is how many records can be switched: they are numbered from 0.
	Records int
	// Apply brings changes into the text, all or none. Changes are ascending by
	// record, and each changes its record. One call at a time.
	Apply func(ctx context.Context, changes []Change) error
	// Commit, where set, makes the end of requests durable before anybody is told.
	// Those of one update come together. An error ends the coordinator's work:
	// requests that were not committed, and all later ones, get ErrUncommitted.
	Commit func(End) error

	// Admit, where set, says how many of the requests that wait now may be carried out: the first n, and
	// until when the others are held if no request comes. They are in the order of their deadlines, and
	// those of one client as they were submitted. One that switches nothing, with none of its client's before it,
	// is not held. Where alone is true, the next one waits for its own client's allowance: it is left out with
	// the others of its client, and Admit is asked again. changes are those that the first n would make together.
	Admit func(at time.Time, ts []*Ticket, changes func(n int) []Change) (n int, until time.Time, alone bool)

	// Queue is how many requests may wait; Submit blocks while so many do.
	// Default 1024.
	Queue int
	// MaxWait is how long a request may wait until an update takes it up, in
	// front of a full queue and inside; then it is answered with ErrExpired.
	// 0: as long as it takes.
	MaxWait time.Duration
	// Gather is how long an update waits for company once there is a request.
	// 0: not at all; requests still meet while the update before them runs.
	Gather time.Duration
	// Linger has an update wait until as many requests have come as the last one
	// carried and were waiting at its end, though no longer after that end than so
	// many times the mean time of an update. A client that is answered asks again a little
	// later: without this, clients fall into two halves, one being carried out while
	// the other arrives. A client that is alone never waits. 0: not at all.
	Linger float64

	// Now is the clock that deadlines are compared with; nil: time.Now.
	Now func() time.Time

	Listener Listener
}

func (c *Config) validate() error {
	switch {
	case c.Records < 0:
		return fmt.Errorf("coordinator: %d records: want 0 or more", c.Records)
	case c.Apply == nil:
		return errors.New("coordinator: no Apply: nothing can be switched")
	case c.Queue < 0:
		return fmt.Errorf("coordinator: queue of %d requests: want 1 or more, or 0 for 1024", c.Queue)
	case c.MaxWait < 0:
		return fmt.Errorf("coordinator: longest wait %v: want 0 or more", c.MaxWait)
	case c.Gather < 0:
		return fmt.Errorf("coordinator: gathering for %v: want 0 or more", c.Gather)
	case !(c.Linger >= 0):
		return fmt.Errorf("coordinator: lingering for %v times an update: want 0 or more", c.Linger)
	}
	return nil
}

// End is how requests ended. It is good until the function that got it returns.
type End struct {
	Tickets []*Ticket
	Err     error // nil: their wishes are live
	wants   *wants
}

// Wants is what a client of one of the tickets wants from now on, ascending. Only
// where Err is nil.
func (e End) Wants(client string) []int { return e.wants.of(client) }

// Stats counts a Coordinator's requests, updates and changes.
type Stats struct {
	Requests uint64 // answered, in any way; not those that Submit refused
	Updates  uint64 // calls of Apply
	Failed   uint64 // of these
	Changes  uint64 // records switched
}

// Coordinator carries requests out. Requests of one client take effect in the order
// in which they were submitted.
//
// Lock order: submit before shown.mu. Neither is held while Apply, Commit or a listener runs.
type Coordinator struct {
	cfg   Config
	queue chan *Ticket
	wants *wants // run's alone
	last  last   // run's alone
	held  held   // run's alone
	shown shown

	submit  sync.RWMutex // guards queue's closing against senders
	closing chan struct{}
	once    sync.Once
	ended   chan struct{}
	cancel  context.CancelCauseFunc

	broken                             atomic.Pointer[error] // what Commit failed with
	requests, updates, failed, changes atomic.Uint64
}

// New starts a coordinator of records that are all disabled. Close ends it; so does
// ctx, as a Close would whose time is up.
func New(ctx context.Context, cfg Config) (*Coordinator, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Queue == 0 {
		cfg.Queue = 1024
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Listener = cfg.Listener.orNothing()
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Coordinator{
		cfg:     cfg,
		queue:   make(chan *Ticket, cfg.Queue),
		wants:   newWants(cfg.Records),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		cancel:  cancel,
	}
	c.shown.users = make([]int32, cfg.Records)
	go c.run(ctx)
	return c, nil
}

// Submit hands requests in that go together, mostly a single one: all of them are
// carried out with one update or none. It blocks while the queue is full, until
// ctx ends or the wait is over.
func (c *Coordinator) Submit(ctx context.Context, rs ...Request) (*Ticket, error) {
	ts, err := c.submitAll(ctx, rs)
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}

// SubmitEach hands requests in that come at the same moment, each by itself: the update that
// takes up one of them takes up all. It blocks as Submit does. With an error it
// returns the tickets of the first ones, which are on their way all the same.
func (c *Coordinator) SubmitEach(ctx context.Context, rs ...Request) ([]*Ticket, error) {
	alone := make([][]Request, len(rs))
	for i := range rs {
		alone[i] = rs[i : i+1 : i+1]
	}
	return c.submitAll(ctx, alone...)
}

// submitAll queues tickets one behind the other. Each knows when the last one is there.
func (c *Coordinator) submitAll(ctx context.Context, each ...[]Request) (ts []*Ticket, err error) {
	for _, rs := range each {
		for _, r := range rs {
			if err := r.check(c.cfg.Records); err != nil {
				return nil, err
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.submit.RLock()
	defer c.submit.RUnlock()
	select {
	case <-c.closing:
		return nil, ErrClosed
	default:
	}
	var all chan struct{} // nil for one that comes alone
	if len(each) > 1 {
		all = make(chan struct{})
		defer close(all)
	}
	for _, rs := range each {
		t := newTicket(c, rs, all)
		if err := c.enqueue(ctx, t); err != nil {
			return ts, err
		}
		ts = append(ts, t)
	}
	return ts, nil
}

// enqueue waits for room. A ticket that expires meanwhile is answered as in the queue.
func (c *Coordinator) enqueue(ctx context.Context, t *Ticket) (err error) {
	select {
	case c.queue <- t:
		return nil
	case <-t.done:
		return nil
	case <-c.closing:
		err = ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	t.take()
	return err
}

// Do submits a request and waits until it is live. When ctx ends first the
// request is withdrawn, if that is still possible.
func (c *Coordinator) Do(ctx context.Context, r Request) error {
	t, err := c.Submit(ctx, r)
	if err != nil {
		return err
	}
	select {
	case <-t.Done():
	case <-ctx.Done():
		if t.Cancel() {
			return context.Cause(ctx)
		}
		<-t.Done() // an update that has begun ends one way or the other
	}
	return t.Err()
}

// Close takes no more requests, carries out those that wait, and returns. When
// ctx ends first, the update that runs is cancelled (and leaves every site whole)
// and whatever waits is answered with ErrClosed.
func (c *Coordinator) Close(ctx context.Context) error {
	c.stop()
	var err error
	select {
	case <-c.ended:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.cancel(ErrClosed)
	<-c.ended
	return err
}

// stop takes no more requests.
func (c *Coordinator) stop() {
	c.once.Do(func() {
		close(c.closing)
		c.submit.Lock() // no Submit runs any more
		close(c.queue)
		c.submit.Unlock()
	})
}

// Stats reads the counters.
func (c *Coordinator) Stats() Stats {
	return Stats{c.requests.Load(), c.updates.Load(), c.failed.Load(), c.changes.Load()}
}

// Snapshot is the committed wants at one moment.
func (c *Coordinator) Snapshot() *Snapshot { return c.shown.snapshot() }

// Clients is how many clients want a record.
func (c *Coordinator) Clients() int { return int(c.shown.clients.Load()) }
