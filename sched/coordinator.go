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
	// Began, where set, is told which requests are about to be carried out.
	Began func(ts []*Ticket)
	// Answered, where set, is told how requests ended, before they are answered:
	// those of one update together. An update does not end before Answered returns.
	Answered func(ts []*Ticket, err error)
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
	wants *Wants // nobody's but run's
	live  []bool // the text calls a tracer

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
		wants:   NewWants(records),
		live:    make([]bool, records),
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		cancel:  cancel,
	}
	go c.run(ctx)
	return c
}

// Ticket is a request on its way, or several that go together.
type Ticket struct {
	requests []Request
	of       *Coordinator
	state    atomic.Uint32
	done     chan struct{}
	err      error
	expiry   *time.Timer // nil: waits as long as it takes
}

// Requests is what was submitted.
func (t *Ticket) Requests() []Request { return t.requests }

// The states of a ticket. Whoever takes it answers it.
const (
	queued uint32 = iota
	taken
)

// Done is closed when the request is answered; Err tells how.
func (t *Ticket) Done() <-chan struct{} { return t.done }

// Err is nil when the request is live, after Done.
func (t *Ticket) Err() error { return t.err }

// Cancel withdraws a request that no update has taken up, and tells whether it
// did. One that is being carried out goes on.
func (t *Ticket) Cancel() bool {
	if !t.take() {
		return false
	}
	t.of.answer([]*Ticket{t}, ErrCancelled)
	return true
}

// expire is called by the ticket's timer.
func (t *Ticket) expire() {
	if t.state.CompareAndSwap(queued, taken) {
		t.of.answer([]*Ticket{t}, ErrExpired)
	}
}

// answer ends requests that were taken.
func (c *Coordinator) answer(ts []*Ticket, err error) {
	if c.cfg.Answered != nil {
		c.cfg.Answered(ts, err)
	}
	c.requests.Add(uint64(len(ts)))
	for _, t := range ts {
		t.err = err
		close(t.done)
	}
}

// take stops a request's waiting, and tells whether it still waited.
func (t *Ticket) take() bool {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	return t.state.CompareAndSwap(queued, taken)
}

// Submit hands requests in that go together, mostly a single one: all of them are
// carried out with one update or none. It blocks while the queue is full, until
// ctx ends or the wait is over.
func (c *Coordinator) Submit(ctx context.Context, rs ...Request) (*Ticket, error) {
	for _, r := range rs {
		if err := c.wants.Check(r); err != nil {
			return nil, err
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
	t := c.ticket(rs)
	select {
	case <-t.done: // its deadline was over
		return t, nil
	default:
	}
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

func (c *Coordinator) ticket(rs []Request) *Ticket {
	t := &Ticket{requests: rs, of: c, done: make(chan struct{})}
	wait, bounded := c.cfg.MaxWait, c.cfg.MaxWait > 0
	for _, r := range rs {
		if !r.Deadline.IsZero() && (!bounded || time.Until(r.Deadline) < wait) {
			wait, bounded = time.Until(r.Deadline), true
		}
	}
	switch {
	case bounded && wait <= 0: // now: a timer might come after an update
		t.expire()
	case bounded:
		t.expiry = time.AfterFunc(wait, t.expire)
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
func (c *Coordinator) Live(record int) bool { return c.live[record] }

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
	c.answer(ts, err)
}

// try applies what requests change together. When it fails nothing is changed.
func (c *Coordinator) try(ctx context.Context, ts []*Ticket) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	if c.cfg.Began != nil {
		c.cfg.Began(ts)
	}
	var us []undo
	for _, t := range ts {
		for _, r := range t.requests {
			us = append(us, c.wants.add(r))
		}
	}
	changes := c.changesOf(us)
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
	for _, ch := range changes {
		c.live[ch.Record] = ch.Enable
	}
	c.changes.Add(uint64(len(changes)))
	return nil
}

// changesOf is what the text lacks of what is wanted, by record. Opposite wishes
// about one record have met in their number and left nothing to do.
func (c *Coordinator) changesOf(us []undo) (out []Change) {
	all := c.wants.changed(us)
	if all == nil {
		return nil
	}
	for rec := range all.all() {
		if want := c.wants.Users(rec) > 0; want != c.live[rec] {
			out = append(out, Change{rec, want})
		}
	}
	return out
}
