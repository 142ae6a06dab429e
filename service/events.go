// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
)

// EventKind is what an event is about.
type EventKind string

// The kinds. Those of the machine may be a sample; see Event.Skipped.
const (
	UpdateChanged EventKind = "update"    // Update
	Stepped       EventKind = "step"      // the patcher made a step of its plan
	Published     EventKind = "batch"     // it published Count patches, 0: none any more
	RoundSent     EventKind = "round"     // CPU sent a round to Count targets
	Interrupted   EventKind = "interrupt" // CPU took one and answered
	Trapped       EventKind = "trap"      // CPU ran into a breakpoint
	Plugged       EventKind = "plug"      // CPU has come (Hit) or gone
)

// Event is something that has happened. Times are nanoseconds since the machine was
// built.
type Event struct {
	ID      int64 // ascending by one, from the microseconds since 1970 at which the server was started on
	Kind    EventKind
	FromNS  int64
	UntilNS int64
	CPU     int    // -1: none
	Name    string // of the step, or the cause of the interrupt
	Count   int
	Hit     bool
	Skipped uint64  // events of the machine left out since the one before
	Update  *Update // nil unless UpdateChanged
}

const (
	kept     = 1 << 14 // events that can be read again
	backlog  = 1 << 13 // events that a reader may be behind
	sampleNS = 10_000_000
	sample   = 33 // in sampleNS at most, of the patcher, of interrupts and of traps each: 9,900 events a second together
)

// budget bounds how many events are told in a window of time, so that CPUs that trap
// all the time do not keep the patcher's from being seen, nor interrupts.
type budget struct {
	window int64 // of sampleNS
	inside int   // events in it
}

func (b *budget) spend(at int64) bool {
	if w := at / sampleNS; w > b.window {
		*b = budget{window: w}
	}
	b.inside++
	return b.inside <= sample
}

// ring is the last events and who reads them.
type ring struct {
	mu      sync.Mutex
	events  []Event // of ID i at i%kept
	first   int64   // of this start
	next    int64
	readers map[chan Event]bool
	closed  bool

	patcher, interrupts, traps budget
	skipped                    uint64
}

// newRing is nobody's, of a server that was started at a time. Its events' IDs begin
// there: they ascend from one start to the next, as fewer than a million events are
// told a second, and who has heard some of an earlier start is known by what it heard.
// They stay below 2^53, which JSON's readers count to.
func newRing(started time.Time) *ring {
	first := started.UnixMicro()
	return &ring{events: make([]Event, kept), first: first, next: first, readers: map[chan Event]bool{}}
}

// add tells an event. Readers that are too slow are dropped, not waited for.
func (r *ring) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.leaveOut(&e) {
		return
	}
	e.ID, e.Skipped = r.next, r.skipped
	r.skipped = 0
	r.events[e.ID%kept] = e
	r.next++
	for c := range r.readers {
		select {
		case c <- e:
		default:
			delete(r.readers, c)
			close(c)
		}
	}
}

// leaveOut tells whether an event is one too many.
func (r *ring) leaveOut(e *Event) bool {
	var told bool
	switch e.Kind {
	case UpdateChanged, Plugged:
		return false
	case Interrupted:
		told = r.interrupts.spend(e.UntilNS)
	case Trapped:
		told = r.traps.spend(e.UntilNS)
	default:
		told = r.patcher.spend(e.UntilNS)
	}
	if !told {
		r.skipped++
	}
	return !told
}

// Events is what has happened after the event of that ID (0: all that is known), what
// happens from now on, and a way to end it. gap tells that some of it is not known any more. live is
// closed for a reader who is too slow, and by Close.
func (s *Service) Events(after int64) (past []Event, live <-chan Event, cancel func(), gap bool) {
	past, live, end, gap := s.events.read(after)
	s.watching()
	return past, live, func() {
		end()
		s.watching()
	}, gap
}

func (r *ring) read(after int64) (past []Event, live <-chan Event, cancel func(), gap bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if after == 0 { // everything
		after = r.first - 1
	}
	first := max(r.first, r.next-kept)
	gap = after+1 < first || after >= r.next // of another start, whatever the clock said then
	if after >= r.next {
		after = 0
	}
	for id := max(after+1, first); id < r.next; id++ {
		past = append(past, r.events[id%kept])
	}
	c := make(chan Event, backlog)
	if r.closed {
		close(c)
		return past, c, func() {}, gap
	}
	r.readers[c] = true
	return past, c, func() { r.drop(c) }, gap
}

// watched tells whether anybody reads.
func (r *ring) watched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.readers) > 0
}

func (r *ring) drop(c chan Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readers[c] {
		delete(r.readers, c)
		close(c)
	}
}

func (r *ring) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for c := range r.readers {
		delete(r.readers, c)
		close(c)
	}
}

// tell tells everybody how an update is now.
func (s *Service) tell(u Update) {
	now := s.live.Now()
	s.events.add(Event{Kind: UpdateChanged, CPU: -1, FromNS: now, UntilNS: now, Update: &u})
}

// tellLost tells what clients lost because the table is another than before. The journal
// has it too, as updates of theirs.
func (s *Service) tellLost() {
	for _, u := range s.store.Remapped() {
		s.log.Warn("not in this table", zap.Int64("update", u.ID), zap.String("client", u.Client), zap.String("ops", u.Ops),
			zap.Int("records", u.Records), zap.String("lost", u.Error))
		s.lost += u.Records
		s.tell(u)
	}
}

// listener tells the machine's events.
func (s *Service) listener() *cpus.Listener {
	r := s.events
	return &cpus.Listener{
		Round: func(_ uint64, from int, cause cpus.Cause, targets int, at int64) {
			r.add(Event{Kind: RoundSent, CPU: from, Name: cause.String(), Count: targets, FromNS: at, UntilNS: at})
		},
		Interrupt: func(_ uint64, cpu int, cause cpus.Cause, from, until int64) {
			r.add(Event{Kind: Interrupted, CPU: cpu, Name: cause.String(), FromNS: from, UntilNS: until})
		},
		Trap: func(cpu int, from, until int64, hit bool) {
			r.add(Event{Kind: Trapped, CPU: cpu, Hit: hit, FromNS: from, UntilNS: until})
		},
		Step: func(cpu int, name string, from, until int64) {
			r.add(Event{Kind: Stepped, CPU: cpu, Name: name, FromNS: from, UntilNS: until})
			if phase := s.phase.Load(); phase != nil {
				phase.Store(&name)
			}
			s.cfg.At(AfterStep + name)
		},
		Batch: func(at int64, fill int) {
			r.add(Event{Kind: Published, CPU: -1, Count: fill, FromNS: at, UntilNS: at})
		},
	}
}
