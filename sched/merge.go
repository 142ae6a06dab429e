package sched

import (
	"fmt"
	"iter"
	"math/bits"
	"slices"
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
	Records []int // numbers in the table
	// ID is the caller's own name for the request, for Config's functions.
	ID int64
	// Deadline is when the request ends with ErrExpired if no update has taken
	// it up; the zero time for MaxWait alone.
	Deadline time.Time
}

// Wants is who wants which records of a table.
type Wants struct {
	clients map[string]*set // none that wants nothing
	users   []int32         // clients that want the record
}

// set is a set of records: a bit for each, since clients may want all.
type set struct {
	bits []uint64
	n    int
}

func (w *Wants) newSet() *set { return &set{bits: make([]uint64, (len(w.users)+63)/64)} }

func (s *set) has(rec int) bool { return s != nil && s.bits[rec/64]>>(rec%64)&1 != 0 }

// flip changes whether a record is in the set.
func (s *set) flip(rec int) {
	s.bits[rec/64] ^= 1 << (rec % 64)
	if s.has(rec) {
		s.n++
	} else {
		s.n--
	}
}

// all is the set's records, ascending.
func (s *set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// NewWants is nobody's, of so many records.
func NewWants(records int) *Wants {
	return &Wants{clients: map[string]*set{}, users: make([]int32, records)}
}

// Check refuses requests that name records which are not there.
func (w *Wants) Check(r Request) error {
	for _, rec := range r.Records {
		if rec < 0 || rec >= len(w.users) {
			return fmt.Errorf("client %s: record %d: there are %d", r.Client, rec, len(w.users))
		}
	}
	return nil
}

// Add notes what a request wants.
func (w *Wants) Add(r Request) { w.add(r) }

// Users is how many clients want a record.
func (w *Wants) Users(rec int) int { return int(w.users[rec]) }

// Clients are those that want anything, in no order.
func (w *Wants) Clients() iter.Seq[string] {
	return func(yield func(string) bool) {
		for c := range w.clients {
			if !yield(c) {
				return
			}
		}
	}
}

// Of is what a client wants, ascending.
func (w *Wants) Of(client string) []int {
	s := w.clients[client]
	if s == nil {
		return nil
	}
	return slices.AppendSeq(make([]int, 0, s.n), s.all())
}

// undo takes a request back: the records that it changed for its client.
type undo struct {
	request Request
	changed *set // nil for none
}

func (w *Wants) add(r Request) undo {
	u := undo{request: r}
	for _, rec := range r.Records {
		if w.clients[r.Client].has(rec) == r.Enable {
			continue
		}
		if u.changed == nil {
			u.changed = w.newSet()
		}
		w.flip(r.Client, rec)
		u.changed.flip(rec)
	}
	return u
}

// flip notes that a client wants a record, or that it does no more.
func (w *Wants) flip(client string, rec int) {
	mine := w.clients[client]
	if mine == nil {
		mine = w.newSet()
		w.clients[client] = mine
	}
	mine.flip(rec)
	if mine.has(rec) {
		w.users[rec]++
		return
	}
	if w.users[rec]--; mine.n == 0 {
		delete(w.clients, client)
	}
}

// takeBack reverts requests, the last one first.
func (w *Wants) takeBack(us []undo) {
	for _, u := range slices.Backward(us) {
		if u.changed == nil {
			continue
		}
		for rec := range u.changed.all() {
			w.flip(u.request.Client, rec)
		}
	}
}

// changed is the records that requests have changed for anybody, nil for none.
func (w *Wants) changed(us []undo) (all *set) {
	for _, u := range us {
		if u.changed == nil {
			continue
		}
		if all == nil {
			all = w.newSet()
		}
		for i, word := range u.changed.bits {
			all.bits[i] |= word
		}
	}
	return all
}
