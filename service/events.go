// SPDX-License-Identifier: Apache-2.0

package service

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/textpoke/textpoke/cpus"
)

// EventKind says what happened.
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

// EventKinds lists them all.
func EventKinds() []EventKind {
	return []EventKind{UpdateChanged, Stepped, Published, RoundSent, Interrupted, Trapped, Plugged}
}

// Event is something that has happened. Times are nanoseconds since the machine was built. All
// readers share one event and must not change it.
type Event struct {
	ID      int64     `json:"id"` // ascending by one, from the microseconds since 1970 at which the server was started on
	Kind    EventKind `json:"kind"`
	FromNS  int64     `json:"from_ns"`
	UntilNS int64     `json:"until_ns"`
	CPU     *int      `json:"cpu,omitempty"`  // nil: none
	Name    string    `json:"name,omitempty"` // of the step, or the cause of the interrupt
	Count   int       `json:"count,omitempty"`
	Hit     bool      `json:"hit,omitempty"`
	Skipped uint64    `json:"skipped,omitempty"` // events of the machine left out since the one before
	Update  *Update   `json:"update,omitempty"`  // nil unless UpdateChanged

	text atomic.Pointer[[]byte] // see Text
}

// Text is an event as encode writes it. The first reader that asks has it encoded, for all
// of them.
func (e *Event) Text(encode func(*Event) ([]byte, error)) ([]byte, error) {
	if text := e.text.Load(); text != nil {
		return *text, nil
	}
	text, err := encode(e)
	if err == nil {
		e.text.Store(&text)
	}
	return text, err
}

const (
	kept     = 1 << 14 // events that can be read again
	piece    = 256     // events that a reader gets at a time
	sampleNS = 10_000_000
	sample   = 33 // in sampleNS at most, of the patcher, of interrupts and of traps each: 9,900 events a second together
)

// allowance bounds how many events are told in a window of time, so that CPUs that trap
// all the time do not keep the patcher's from being seen, nor interrupts.
type allowance struct {
	window int64 // of sampleNS
	inside int   // events in it
}

func (b *allowance) spend(at int64) bool {
	if w := at / sampleNS; w > b.window {
		*b = allowance{window: w}
	}
	b.inside++
	return b.inside <= sample
}

// ring is the last events. Those who tell events take a lock for a moment; readers take none,
// so that no number of them holds up the machine or the journal.
type ring struct {
	slots [kept]atomic.Pointer[Event] // the event of ID i at i%kept
	first int64                       // of this start
	next  atomic.Int64
	more  atomic.Pointer[chan struct{}] // closed when there is another event; nil while no reader waits
	ended chan struct{}

	telling                    sync.Mutex // guards what follows
	closed                     bool
	patcher, interrupts, traps allowance
	skipped                    uint64
}

// newRing is the ring of a server that was started at a time. Its events' IDs begin
// there: they ascend from one start to the next, as fewer than a million events are
// told a second, so that a reader's last ID shows whether it is of an earlier start.
// They stay below 2^53, which JSON's readers count to.
func newRing(started time.Time) *ring {
	r := &ring{first: started.UnixMicro(), ended: make(chan struct{})}
	r.next.Store(r.first)
	return r
}

// add tells an event. It waits for no reader.
func (r *ring) add(e *Event) {
	r.telling.Lock()
	defer r.telling.Unlock()
	if r.closed || r.leaveOut(e) {
		return
	}
	e.ID, e.Skipped = r.next.Load(), r.skipped
	r.skipped = 0
	r.slots[e.ID%kept].Store(e)
	r.next.Store(e.ID + 1)
	if more := r.more.Swap(nil); more != nil {
		close(*more)
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

// wait is closed when there is an event behind those before next.
func (r *ring) wait(next int64) <-chan struct{} {
	for {
		more := r.more.Load()
		if more == nil {
			fresh := make(chan struct{})
			if !r.more.CompareAndSwap(nil, &fresh) {
				continue
			}
			more = &fresh
		}
		if r.next.Load() > next { // told before the channel was there
			now := make(chan struct{})
			close(now)
			return now
		}
		return *more
	}
}

func (r *ring) close() {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.closed = true
	close(r.ended)
}

// Reader reads events in pieces, each at its own pace. It is one goroutine's.
type Reader struct {
	ring *ring
	next int64 // the ID of the event that it reads next
	gap  bool  // it asked for an event of another start
}

// Events is a reader of the events after that ID (0: all that are known), and of those from
// now on.
func (s *Service) Events(after int64) *Reader { return s.events.read(after) }

func (r *ring) read(after int64) *Reader {
	if after == 0 { // everything
		after = max(r.first, r.next.Load()-kept) - 1
	}
	if after < r.first-1 || after >= r.next.Load() { // of another start, whatever the clock said then
		return &Reader{ring: r, next: max(r.first, r.next.Load()-kept), gap: true}
	}
	return &Reader{ring: r, next: after + 1}
}

// Gap is how many events before the reader's next one were dropped, so that it misses them: -1, not
// counted, for events of an earlier start, and 0 for none. It tells of each gap once.
func (r *Reader) Gap() (missed int64) {
	if r.gap {
		r.gap, missed = false, -1
	}
	if oldest := r.ring.next.Load() - kept; r.next < oldest {
		if missed == 0 {
			missed = oldest - r.next
		}
		r.next = oldest
	}
	return missed
}

// Read appends the next events to those given, at most 256 of them. Where it returns none
// there are none yet, or the reader has fallen behind: Gap tells.
func (r *Reader) Read(into []*Event) []*Event {
	until := min(r.ring.next.Load(), r.next+piece)
	for ; r.next < until; r.next++ {
		e := r.ring.slots[r.next%kept].Load()
		if e.ID != r.next { // overwritten
			break
		}
		into = append(into, e)
	}
	return into
}

// More is closed when there is something to read, and Ended when the service is closed.
func (r *Reader) More() <-chan struct{} {
	if r.gap {
		return r.ring.wait(0)
	}
	return r.ring.wait(r.next)
}

// Ended is closed when no more events will come.
func (r *Reader) Ended() <-chan struct{} { return r.ring.ended }

// tell tells everybody how an update is now.
func (s *Service) tell(u Update) {
	now := s.live.Now()
	s.events.add(&Event{Kind: UpdateChanged, FromNS: now, UntilNS: now, Update: &u})
}

// tellLost names the wishes that clients lost because the table of records changed. The journal has
// them too, as updates of these clients.
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
			r.add(&Event{Kind: RoundSent, CPU: &from, Name: cause.String(), Count: targets, FromNS: at, UntilNS: at})
		},
		Interrupt: func(_ uint64, cpu int, cause cpus.Cause, from, until int64) {
			r.add(&Event{Kind: Interrupted, CPU: &cpu, Name: cause.String(), FromNS: from, UntilNS: until})
		},
		Trap: func(cpu int, from, until int64, hit bool) {
			r.add(&Event{Kind: Trapped, CPU: &cpu, Hit: hit, FromNS: from, UntilNS: until})
		},
		Step: func(cpu int, name string, from, until int64) {
			r.add(&Event{Kind: Stepped, CPU: &cpu, Name: name, FromNS: from, UntilNS: until})
			if phase := s.phase.Load(); phase != nil {
				phase.Store(&name)
			}
			s.cfg.At(AfterStep + name)
		},
		Batch: func(at int64, fill int) {
			r.add(&Event{Kind: Published, Count: fill, FromNS: at, UntilNS: at})
		},
	}
}
