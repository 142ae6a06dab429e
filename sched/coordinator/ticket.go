// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Change is one record to be switched.
type Change struct {
	Record int
	Enable bool
}

// Request is what one client wants: a set of records enabled or disabled for it.
// A record is enabled while any client wants it. Enabling what the client has
// enabled already, and disabling what it has not, changes nothing. Records is not
// to be written once the request is submitted.
type Request struct {
	Client  string
	Enable  bool
	Set     bool  // all others are disabled for the client; goes with Enable
	Records []int // numbers from 0, ascending if Set; see Config.Records
	// ID is the caller's own name for the request, for Config's functions.
	ID int64
	// Deadline is when the request ends with ErrExpired if no update has taken
	// it up; the zero time for MaxWait alone.
	Deadline time.Time
}

// check refuses requests that name records which are not there.
func (r *Request) check(records int) error {
	for _, rec := range r.Records {
		if rec < 0 || rec >= records {
			return fmt.Errorf("client %s: record %d: there are %d", r.Client, rec, records)
		}
	}
	return nil
}

// Ticket is a request on its way, or several that go together.
type Ticket struct {
	requests []Request
	company  <-chan struct{} // closed when all tickets that were handed in with it are in the queue; nil: alone
	of       *Coordinator
	state    atomic.Uint32
	done     chan struct{}
	err      error
	deadline time.Time   // the zero time: waits as long as it takes
	expiry   *time.Timer // at the deadline; nil for none
}

// The states of a ticket. The goroutine that takes it answers it.
const (
	queued uint32 = iota
	taken
)

func newTicket(c *Coordinator, rs []Request, company <-chan struct{}) *Ticket {
	t := &Ticket{requests: rs, company: company, of: c, done: make(chan struct{})}
	now := c.cfg.Now()
	if c.cfg.MaxWait > 0 {
		t.deadline = now.Add(c.cfg.MaxWait)
	}
	for _, r := range rs {
		if !r.Deadline.IsZero() && (t.deadline.IsZero() || r.Deadline.Before(t.deadline)) {
			t.deadline = r.Deadline
		}
	}
	if !t.deadline.IsZero() {
		t.expiry = time.AfterFunc(t.deadline.Sub(now), t.expire)
	}
	return t
}

// Requests is what was submitted.
func (t *Ticket) Requests() []Request { return t.requests }

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
	t.withdraw(ErrCancelled)
	return true
}

// takeUp is what an update does at a moment: it takes the request, unless its time is
// up by then. Timers come late: those of a process that was stopped, after the clock
// has gone on, come when it is all over.
func (t *Ticket) takeUp(at time.Time) bool {
	return !t.late(at) && t.take()
}

// late lets a request expire whose time is up, and tells so.
func (t *Ticket) late(at time.Time) bool {
	if t.deadline.IsZero() || at.Before(t.deadline) {
		return false
	}
	t.expire()
	return true
}

// expire is called by the ticket's timer, too.
func (t *Ticket) expire() {
	if t.state.CompareAndSwap(queued, taken) {
		t.withdraw(ErrExpired)
	}
}

// withdraw answers a request that was taken by somebody else than an update.
func (t *Ticket) withdraw(why error) { t.of.tell(t.of.settle([]*Ticket{t}, nil, why)) }

// take stops a request's waiting, and tells whether it still waited.
func (t *Ticket) take() bool {
	if t.expiry != nil {
		t.expiry.Stop()
	}
	return t.state.CompareAndSwap(queued, taken)
}

// Listener is told what a Coordinator does. Every function may be nil. Those about
// updates are called by the goroutine that carries requests out, one at a time.
type Listener struct {
	// Began is told which requests are about to be carried out together, and when they
	// were taken up: no deadline was over by then.
	Began func(at time.Time, ts []*Ticket)
	// Held is told which requests wait though no update runs, until when.
	Held func(ts []*Ticket, until time.Time)
	// Split is told that an update of so many requests failed, and that each is
	// tried by itself now.
	Split func(requests int, err error)
	// Ended is told how requests ended, once snapshots show it and before the waiting
	// clients go on. Requests that are cancelled or expire end at any time.
	Ended func(End)
}

// orNothing is a listener whose functions are there.
func (l Listener) orNothing() Listener {
	if l.Began == nil {
		l.Began = func(time.Time, []*Ticket) {}
	}
	if l.Held == nil {
		l.Held = func([]*Ticket, time.Time) {}
	}
	if l.Split == nil {
		l.Split = func(int, error) {}
	}
	if l.Ended == nil {
		l.Ended = func(End) {}
	}
	return l
}
