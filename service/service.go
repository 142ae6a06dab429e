// SPDX-License-Identifier: Apache-2.0

// Package service is the machine that many clients share: it accepts updates so
// that they survive a crash, lets a coordinator carry them out on a Machine, and
// tells all listeners about it.
//
// The promise rests on an order: an update is in the journal before Submit returns, and its end is
// in the journal before its client is told. After a crash one update makes live again what the
// journal calls live, and accepted updates without an end are carried out as if they had just come.
// Some of them may have reached the old machine's text; the new machine begins with new text, so
// that makes no difference.
//
// The order of locks: a goroutine that holds Service.handing may take Service.mu, and one
// that holds any lock may take ring.telling, which is held for a moment to tell an event.
// Readers of events take no lock. None is held while the journal is written, the machine is
// waited for, or a caller's function runs, but for handing, which is held until the
// coordinator has room.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/sched/coordinator"
	"github.com/textpoke/textpoke/service/journal"
)

// Clients see an update as the journal keeps it.
type (
	Update = journal.Update
	State  = journal.State
	Query  = journal.Query
)

// Config is what a Service is made of.
type Config struct {
	Table   *records.Table // what can be switched
	Machine Maker
	Ops     []string       // the ops that the machine has; nil for any
	Budget  []Limit        // what updates may cost; nil: anything
	Quiet   []Window       // when nothing is switched
	Store   *journal.Store // the caller closes it, after Close
	Log     *zap.Logger

	Queue     int           // updates on their way, 0: 1024
	PerClient int           // of these one client's, 0: a quarter of Queue
	Clients   int           // pairs of client and ops that want something, 0: 100,000
	MaxWait   time.Duration // longest wait in the queue, 0: as long as it takes
	Gather    time.Duration // how long an update waits for company, 0: not at all
	Linger    float64       // see coordinator.Config.Linger; 0: 4, below 0: not at all
	Keep      journal.Keep  // what stays in the journal
	Compact   time.Duration // time between two compactions, 0: only by Service.Compact
	Look      time.Duration // time between two looks at the journal, 0: only by Service.Look

	Observer Observer // is told how long things take
	// Retry tells when to write again what could not be written; nil: after a second.
	Retry func() <-chan time.Time
	// Now is the clock that deadlines and leases are compared with; nil: time.Now.
	Now func() time.Time
	// Steady is a clock that cannot be set; nil: the time since the start by Now. That of time.Now cannot be set.
	Steady func() time.Duration
	// At, where set, is called at every point of Points, and may end the process.
	At func(point string)
}

// The answers to requests that are not accepted, and to questions.
var (
	ErrQueueFull       = errors.New("as many updates are on their way as may be")
	ErrClientQueueFull = errors.New("this client has as many updates on their way as it may")
	ErrTooManyClients  = errors.New("as many clients want something as may be: first others must disable all of theirs")
	ErrNotFound        = journal.ErrNotFound
	ErrTooLate         = errors.New("the update is being carried out, or has ended")
	ErrKeyReused       = journal.ErrKeyReused
	ErrChanged         = journal.ErrChanged
	ErrClosed          = journal.ErrClosed
	ErrBudget          = errors.New("over the budget")
	ErrBroken          = errors.New("the service has broken down and must be started again")
)

// FieldError is a request that says something impossible.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Observer is told how long what clients wait for takes, and how many share it. Every
// function may be nil; none may block.
type Observer struct {
	Ended   func(Course)        // of an update is durable
	Carried func(requests int)  // a batch began
	Written func(time.Duration) // a transaction of the journal is on the disk
}

// Course is how an update went: the moments at which it left one thing and waited for the next. One of an earlier start
// begins with this one.
type Course struct {
	Update
	Parent   Parent
	Waits    bool // its acceptance was written without a sync; see Request.Waits
	Asked    time.Time
	Handed   time.Time // to the journal
	Written  time.Time // its acceptance is there
	Taken    time.Time // up by the batch that carried it out; the zero time for none
	Switched time.Time // the text is; likewise
	Told     time.Time // its end is on the disk
}

// Parent is the span that an update's are part of, by its trace and its ID in hexadecimal, as a traceparent has them
// (https://www.w3.org/TR/trace-context/, 3.2); the zero value for none.
type Parent struct {
	Trace, Span string
	Unsampled   bool // the client does not record the trace
}

// Service is a running machine and its clients' updates.
type Service struct {
	cfg    Config
	log    *zap.Logger
	store  *journal.Store
	live   Machine
	names  *names
	events *ring
	coord  *coordinator.Coordinator
	ready  atomic.Bool
	alive  context.Context    // until Close
	stop   context.CancelFunc // of that
	beside sync.WaitGroup
	once   sync.Once

	matching chan struct{} // holds one for each filter that is being held against the records

	failed   chan struct{}      // closed by breakDown
	patience context.Context    // until no more tries to write the journal are worth while
	giveUp   context.CancelFunc // of that

	phase atomic.Pointer[atomic.Pointer[string]] // of the last batch; see present

	handing sync.Mutex // orders the requests that go to the coordinator

	mu     sync.Mutex
	closed bool
	broken error
	open   map[int64]*pending
	// accepted is what the coordinator has not been given yet, in the journal's order.
	accepted []*pending
	clients  map[string]int // updates on their way, also those not accepted yet
	total    int            // of all clients
	batch    int64          // number of the last batch

	ends     atomic.Int64 // updates that have ended: what clients want may be another then
	progress progress
	ahead    time.Duration        // of Config.Now before Config.Steady, when it was last looked at
	spentBy  map[string]time.Time // until when each allowance is spent; see Limit.Fits
	fresh    map[string]time.Time // those of them that the journal does not have yet
	waitsFor waiting              // of the next that is held; the coordinator's goroutine alone uses it
	lost     int                  // see Stats; as of the start
	carried  []*pending           // what the coordinator's goroutine carries out; it alone uses this

	forecasts, missed atomic.Uint64 // see Stats

	tallied atomic.Pointer[[]cpus.Tally] // the last; see Status
}

// Start opens the service. When it returns, everything that the journal calls live is live, and
// every accepted update has been carried out. Close must follow.
func Start(ctx context.Context, cfg Config) (*Service, error) {
	cfg.Queue, cfg.Clients, cfg.Linger = cmp.Or(cfg.Queue, 1024), cmp.Or(cfg.Clients, 100_000), cmp.Or(cfg.Linger, linger)
	cfg.PerClient = cmp.Or(cfg.PerClient, max(cfg.Queue/4, 1))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Steady == nil {
		now, start := cfg.Now, cfg.Now()
		cfg.Steady = func() time.Duration { return now().Sub(start) }
	}
	if cfg.Retry == nil {
		cfg.Retry = func() <-chan time.Time { return time.After(time.Second) }
	}
	if cfg.At == nil {
		cfg.At = func(string) {}
	}
	s := &Service{
		cfg: cfg, log: cfg.Log, store: cfg.Store,
		matching: make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)),
		events:   newRing(cfg.Now()), names: newNames(cfg.Table),
		open: map[int64]*pending{}, clients: map[string]int{}, failed: make(chan struct{}),
		spentBy: map[string]time.Time{}, fresh: map[string]time.Time{},
	}
	maps.Copy(s.spentBy, cfg.Store.Spent())
	s.jumped()
	s.patience, s.giveUp = context.WithCancel(context.WithoutCancel(ctx))
	s.store.OnCommit(cfg.Observer.Written)
	var err error
	if s.live, err = cfg.Machine(s.listener(), s.log); err != nil {
		return nil, err
	}
	s.alive, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.recover(ctx); err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, err
	}
	if cfg.Compact > 0 {
		s.beside.Go(func() {
			s.every(s.alive, cfg.Compact, "compaction", func(ctx context.Context) error {
				_, err := s.Compact(ctx)
				return err
			})
		})
	}
	if cfg.Look > 0 {
		s.beside.Go(func() { s.every(s.alive, cfg.Look, "journal", s.Look) })
	}
	s.beside.Go(func() { s.every(s.alive, leaseTick, "leases", s.EndLeases) })
	s.beside.Go(func() { s.every(s.alive, leaseTick, "what the machine holds", s.live.Agree) })
	s.tellLost()
	for _, what := range s.store.Damage() {
		s.log.Error("damaged, and all else is served", zap.String("what", what))
	}
	s.ready.Store(true)
	s.live.SetPacing(cpus.Resting)
	return s, nil
}

// Ready is nil when updates are accepted and can be carried out. While the journal
// cannot be written it says why; that may pass, unless the error is ErrBroken.
func (s *Service) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.broken != nil:
		return s.broken
	case s.closed:
		return ErrClosed
	case !s.ready.Load():
		return errors.New("the machine is being brought up")
	}
	return s.store.Trouble()
}

// Damage is what of the past could not be read at the start, a sentence each: updates that
// have ended. All else is served.
func (s *Service) Damage() []string { return s.store.Damage() }

// Failed is closed when the service has broken down: Ready says why. Nothing brings
// it back but another Start.
func (s *Service) Failed() <-chan struct{} { return s.failed }

// Look looks whether the journal is still there, and after a failed transaction whether the next
// one can succeed. A lasting error breaks the service down.
func (s *Service) Look(ctx context.Context) error {
	err := s.store.Check(ctx)
	if err != nil && !journal.Passing(err) && ctx.Err() == nil {
		s.breakDown(err)
	}
	return err
}

// breakDown ends a service that cannot go on: the journal cannot be written, or the text has
// breakpoints that cannot be taken away. The next start carries out the updates that are on their
// way.
func (s *Service) breakDown(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	s.broken = fmt.Errorf("%w: %w", ErrBroken, why)
	close(s.failed)
	s.giveUp()
	s.log.Error("broken down", zap.Error(why))
	for _, p := range s.open {
		p.leave()
	}
}

func (s *Service) brokenDown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Drain takes no more updates and carries out those that wait. When ctx ends first
// the rest is left in the journal, for the next start; left names it.
func (s *Service) Drain(ctx context.Context) (left []Update, err error) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	if s.coord != nil {
		defer context.AfterFunc(ctx, s.giveUp)()
		err = s.coord.Close(ctx)
	}
	for _, p := range s.pending() {
		p.leave()
		left = append(left, p.update())
	}
	return left, err
}

// Close stops at once and leaves updates without an answer in the journal. It ends the machine and
// all waiting calls.
func (s *Service) Close() error {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Drain(now)
	s.once.Do(func() {
		s.ready.Store(false)
		s.stop()
		s.giveUp()
		s.beside.Wait()
		s.events.close()
		s.live.Close()
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// leaseTick is the time between two looks for leases that are over.
const leaseTick = time.Second

// Compact removes from the journal what Config.Keep does not keep.
func (s *Service) Compact(ctx context.Context) (removed int64, err error) {
	s.cfg.At(BeforeCompact)
	removed, err = s.store.Compact(ctx, s.cfg.Now(), s.cfg.Keep, func() { s.cfg.At(DuringCompact) })
	s.cfg.At(AfterCompact)
	return removed, err
}

// every does something over and over, until ctx ends.
func (s *Service) every(ctx context.Context, period time.Duration, what string, do func(context.Context) error) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.log.Error(what, zap.Error(err))
		}
	}
}
