package sched

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// The answers to requests that were not carried out.
var (
	ErrClosed    = errors.New("coordinator is closed")
	ErrCancelled = errors.New("request was cancelled while it waited")
	ErrExpired   = errors.New("request waited longer than allowed")
)

// Config bounds a Coordinator.
type Config struct {
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
}

// Apply brings changes into the text, all or none.
type Apply func(ctx context.Context, changes []Change) error

// Stats counts what a Coordinator has done.
type Stats struct {
	Requests uint64 // answered, in any way; not those that Submit refused
	Updates  uint64 // calls of Apply
	Failed   uint64 // of these
	Changes  uint64 // records switched
}

// Coordinator merges what many clients want into few updates. A kernel makes
// each wait for text_mutex and pay for its own rounds; here all that wait when an
// update begins share it, so that k clients cost the rounds of one. Requests of
// one client take effect in the order in which they were submitted.
type Coordinator struct {
	cfg   Config
	apply Apply
	log   *zap.Logger
	queue chan *Ticket
	wants *wants

	submit  sync.RWMutex // guards queue's closing against senders
	closing chan struct{}
	once    sync.Once
	ended   chan struct{}
	cancel  context.CancelCauseFunc

	requests, updates, failed, changes atomic.Uint64
}

// NewCoordinator starts a coordinator for a table of so many records, all
// disabled. Close ends it; so does ctx, as a Close would whose time is up.
func NewCoordinator(ctx context.Context, records int, apply Apply, cfg Config, log *zap.Logger) *Coordinator {
	if cfg.Queue == 0 {
		cfg.Queue = 1024
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Coordinator{
		cfg: cfg, apply: apply, log: log,
		queue:   make(chan *Ticket, cfg.Queue),
		wants:   newWants(records),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		cancel:  cancel,
	}
	go c.run(ctx)
	return c
}

// Ticket is a request on its way.
type Ticket struct {
	request Request
	state   atomic.Uint32
	done    chan struct{}
	err     error
	count   *atomic.Uint64 // answered requests
	expiry  *time.Timer    // nil: waits as long as it takes
}

// The states of a ticket.
const (
	queued uint32 = iota
	taken
	answered
)

// Done is closed when the request is answered; Err tells how.
func (t *Ticket) Done() <-chan struct{} { return t.done }

// Err is nil when the request is live, after Done.
func (t *Ticket) Err() error { return t.err }

// Cancel withdraws a request that no update has taken up, and tells whether it
// did. One that is being carried out goes on.
func (t *Ticket) Cancel() bool { return t.answer(queued, ErrCancelled) }

// answer ends a request that is in the state from, and tells whether it was.
func (t *Ticket) answer(from uint32, err error) bool {
	if !t.state.CompareAndSwap(from, answered) {
		return false
	}
	t.count.Add(1)
	t.err = err
	close(t.done)
	return true
}

// take stops a request's waiting, and tells whether it still waited.
func (t *Ticket) take() bool {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	return t.state.CompareAndSwap(queued, taken)
}

// Submit hands a request in. It blocks while the queue is full, until ctx ends or
// MaxWait is over.
func (c *Coordinator) Submit(ctx context.Context, r Request) (*Ticket, error) {
	if err := c.wants.check(r); err != nil {
		return nil, err
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
	t := c.ticket(r)
	var err error
	select {
	case c.queue <- t:
		return t, nil
	case <-t.done: // expired, as in the queue
		return t, nil
	case <-c.closing:
		err = ErrClosed
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	t.take()
	return nil, err
}

func (c *Coordinator) ticket(r Request) *Ticket {
	t := &Ticket{request: r, done: make(chan struct{}), count: &c.requests}
	if c.cfg.MaxWait > 0 {
		t.expiry = time.AfterFunc(c.cfg.MaxWait, func() { t.answer(queued, ErrExpired) })
	}
	return t
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
		c.submit.Lock() // nobody is in Submit any more
		close(c.queue)
		c.submit.Unlock()
	})
}

// Stats reads the counters.
func (c *Coordinator) Stats() Stats {
	return Stats{c.requests.Load(), c.updates.Load(), c.failed.Load(), c.changes.Load()}
}

// Live tells, after Close, whether a record is enabled.
func (c *Coordinator) Live(record int) bool { return c.wants.live[record] }

func (c *Coordinator) run(ctx context.Context) {
	defer close(c.ended)
	defer context.AfterFunc(ctx, c.stop)()
	for first := range c.queue {
		c.update(ctx, c.gather(ctx, first))
	}
}

// gather takes up everything that waits by now.
func (c *Coordinator) gather(ctx context.Context, first *Ticket) []*Ticket {
	if c.cfg.Gather > 0 {
		select {
		case <-time.After(c.cfg.Gather):
		case <-c.closing:
		case <-ctx.Done():
		}
	}
	var all []*Ticket
	for t, more := first, len(c.queue); ; t, more = <-c.queue, more-1 {
		if t.take() {
			all = append(all, t)
		}
		if more == 0 {
			return all
		}
	}
}

// update carries requests out together. When that fails each is tried by itself,
// so that one client's bad record does not cost the others theirs. An update that
// failed because it was cancelled is not tried again.
func (c *Coordinator) update(ctx context.Context, ts []*Ticket) {
	err := c.try(ctx, ts)
	if err != nil && ctx.Err() == nil && len(ts) > 1 {
		c.log.Debug("merged update failed, trying its requests one by one", zap.Int("requests", len(ts)), zap.Error(err))
		for _, t := range ts {
			c.update(ctx, []*Ticket{t})
		}
		return
	}
	for _, t := range ts {
		t.answer(taken, err)
	}
}

// try applies what requests change together. When it fails nothing is changed.
func (c *Coordinator) try(ctx context.Context, ts []*Ticket) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	var us []undo
	for _, t := range ts {
		us = append(us, c.wants.add(t.request))
	}
	changes := c.wants.changes(us)
	if len(changes) == 0 {
		return nil
	}
	c.updates.Add(1)
	if err := c.apply(ctx, changes); err != nil {
		c.failed.Add(1)
		c.wants.takeBack(us)
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ErrClosed, err)
		}
		return err
	}
	c.wants.done(changes)
	c.changes.Add(uint64(len(changes)))
	return nil
}
