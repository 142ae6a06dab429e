// SPDX-License-Identifier: Apache-2.0

package timed

import "math/bits"

// Nanos is a time, or a length of time, on the machine's own clock.
type Nanos int64

// event is something that happens at a time. Events at the same time happen in the
// order in which they were asked for.
type event struct {
	at   Nanos
	what uint32 // whom it concerns, and in which way
	next int32  // the event that follows it in its slot, or among those that are free
}

// The kinds of events: which CPU or patcher an event is for, and why.
const (
	bitsKind  = 3
	kindMask  = 1<<bitsKind - 1
	firstRoom = 256
)

// queue holds events, the earliest first: a hierarchical timing wheel, as kernels have
// one for timers (Varghese and Lauck, SOSP 1987; kernel/time/timer.c).
//
// A time is a number of digits to the base of 64. An event waits at the level of the
// first digit, from above, in which it differs from now, in the slot of its digit
// there. So the lowest slot of the lowest level has the earliest event. When now gets
// to a slot its events move to lower levels, each at most once a level, and whatever is
// on the lowest level has its slot for itself and its own time. Slots are lists in the
// order of asking: events of one time are always in one slot, and keep it.
//
// Events live in a slice, so that nothing is allocated for one.
type queue struct {
	now    Nanos
	used   uint32 // levels that hold events
	levels [numLevels]level
	events []event // from 1
	free   int32   // the first that holds none, 0 when all do
}

// level holds the events whose first digit apart from now is this one.
type level struct {
	used  uint64 // slots that hold events
	slots [1 << bitsLevel]slot
}

// slot is a list of events.
type slot struct {
	least       Nanos // time of the earliest
	first, last int32
}

const (
	bitsLevel = 6
	numLevels = (63 + bitsLevel - 1) / bitsLevel
)

func newQueue() queue { return queue{events: make([]event, 1, firstRoom)} }

// push asks for an event, not before the last one that was taken. It returns the event's number,
// which is its own until the event has been taken, and never 0.
func (q *queue) push(at Nanos, what uint32) (number int32) {
	if number = q.free; number != 0 {
		q.free = q.events[number].next
	} else {
		number = int32(len(q.events))
		q.events = append(q.events, event{})
	}
	e := &q.events[number]
	e.at, e.what = at, what
	q.place(number, e)
	return number
}

// place puts an event into its slot, behind all that are there.
func (q *queue) place(number int32, e *event) {
	n := (bits.Len64(uint64(e.at^q.now)|1) - 1) / bitsLevel
	l := &q.levels[n]
	i := uint64(e.at) >> (n * bitsLevel) % (1 << bitsLevel)
	s := &l.slots[i]
	e.next = 0
	if l.used>>i&1 == 0 {
		l.used |= 1 << i
		q.used |= 1 << n
		*s = slot{e.at, number, number}
		return
	}
	q.events[s.last].next = number
	s.last = number
	s.least = min(s.least, e.at)
}

// lowest is the slot with the earliest event; there must be one.
func (q *queue) lowest() (level, slot int) {
	level = bits.TrailingZeros32(q.used)
	return level, bits.TrailingZeros64(q.levels[level].used)
}

// earliest is the time of the next event; false when there is none.
func (q *queue) earliest() (Nanos, bool) {
	if q.used == 0 {
		return 0, false
	}
	n, i := q.lowest()
	return q.levels[n].slots[i].least, true
}

// pop takes the earliest event; there must be one.
func (q *queue) pop() (e event, number int32) {
	n, i := q.lowest()
	s := &q.levels[n].slots[i]
	q.now = s.least
	number = s.first
	if n > 0 && number != s.last {
		q.empty(n, i)
		for number != 0 {
			e := &q.events[number]
			next := e.next
			q.place(number, e)
			number = next
		}
		n, i = 0, int(q.now%(1<<bitsLevel))
		s = &q.levels[0].slots[i]
		number = s.first
	}
	taken := &q.events[number]
	e = *taken
	if s.first = e.next; e.next == 0 {
		q.empty(n, i)
	}
	taken.next, q.free = q.free, number
	return e, number
}

// empty notes that a slot holds nothing any more.
func (q *queue) empty(n, i int) {
	l := &q.levels[n]
	if l.used &^= 1 << i; l.used == 0 {
		q.used &^= 1 << n
	}
}
