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

func (s *set) has(rec int) bool { return s != nil && s.bits[rec/64]>>(rec%64)&1 != 0 }

// flip changes whether a record is in the set.
func (s *set) flip(rec int, in bool) {
	s.bits[rec/64] ^= 1 << (rec % 64)
	if in {
		s.n++
	} else {
		s.n--
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
	out := make([]int, 0, s.n)
	for i, word := range s.bits {
		for ; word != 0; word &= word - 1 {
			out = append(out, i*64+bits.TrailingZeros64(word))
		}
	}
	return out
}

// undo takes a request back: the records that it changed for its client.
type undo struct {
	request Request
	changed []int
}

func (w *Wants) add(r Request) undo {
	u := undo{request: r}
	for _, rec := range r.Records {
		if w.clients[r.Client].has(rec) != r.Enable {
			w.set(r.Client, rec, r.Enable)
			u.changed = append(u.changed, rec)
		}
	}
	return u
}

// set notes or forgets that a client wants a record.
func (w *Wants) set(client string, rec int, enable bool) {
	mine := w.clients[client]
	if mine == nil {
		mine = &set{bits: make([]uint64, (len(w.users)+63)/64)}
		w.clients[client] = mine
	}
	mine.flip(rec, enable)
	if enable {
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
		for _, rec := range u.changed {
			w.set(u.request.Client, rec, !u.request.Enable)
		}
	}
}
