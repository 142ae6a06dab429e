package timed

// Nanos is a time, or a length of time, on the machine's own clock.
type Nanos int64

// event is something that happens at a time. Events at the same time happen in the
// order in which they were asked for: key holds a running number above what it is.
type event struct {
	at  Nanos
	key uint64
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.key < f.key }

// What an event is: whom it concerns, and in which way.
const (
	bitsKind  = 3
	bitsWhat  = 24 // of a key: who and kind
	whatMask  = 1<<bitsWhat - 1
	kindMask  = 1<<bitsKind - 1
	arity     = 4 // of the heap: fewer levels than two, and four events share a cache line
	firstRoom = 256
)

// queue holds events, the earliest first: a heap of values, so that nothing is
// allocated for an event.
type queue struct {
	heap []event
	next uint64 // running number, from 1
}

func newQueue() queue { return queue{heap: make([]event, 0, firstRoom), next: 1} }

// push asks for an event.
func (q *queue) push(at Nanos, what uint32) {
	e := event{at, q.next<<bitsWhat | uint64(what)}
	q.next++
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / arity
		if !e.before(q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = e
}

// earliest is the time of the next event; false when there is none.
func (q *queue) earliest() (Nanos, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].at, true
}

// pop takes the earliest event; there must be one.
func (q *queue) pop() event {
	first := q.heap[0]
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n > 0 {
		q.sink(last)
	}
	return first
}

// sink puts e where the first event was.
func (q *queue) sink(e event) {
	h, i := q.heap, 0
	for {
		child := i*arity + 1
		if child >= len(h) {
			break
		}
		least := child
		for c := child + 1; c < min(child+arity, len(h)); c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if !h[least].before(e) {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = e
}
