// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"iter"
	"math/bits"
	"slices"
)

// wants is who wants which records.
type wants struct {
	clients map[string]*set // none that wants nothing
	users   []int32         // clients that want the record
}

// set is a set of records: their numbers, ascending, while they are few, and else a bit
// for each record, since clients may want all. Names that want one record each are not
// to cost what all records do.
type set struct {
	few  []int32
	bits []uint64 // nil while few has them
	n    int
}

// dense is how many numbers take as much memory as a bit for each record.
func (w *wants) dense() int { return len(w.users) / 32 }

func (s *set) has(rec int) bool {
	switch {
	case s == nil:
		return false
	case s.bits != nil:
		return s.bits[rec/64]>>(rec%64)&1 != 0
	}
	_, found := slices.BinarySearch(s.few, int32(rec))
	return found
}

// flipIn changes whether a record is in a set.
func (w *wants) flipIn(s *set, rec int) {
	if s.bits == nil && s.n >= w.dense() {
		s.bits = make([]uint64, (len(w.users)+63)/64)
		for _, r := range s.few {
			s.bits[r/64] |= 1 << (r % 64)
		}
		s.few = nil
	}
	was := s.has(rec)
	switch at, _ := slices.BinarySearch(s.few, int32(rec)); {
	case s.bits != nil:
		s.bits[rec/64] ^= 1 << (rec % 64)
	case was:
		s.few = slices.Delete(s.few, at, at+1)
	default:
		s.few = slices.Insert(s.few, at, int32(rec))
	}
	if !was {
		s.n++
		return
	}
	s.n--
	if s.bits != nil && s.n < w.dense()/4 { // not at once, or one record would make it go to and fro
		for r := range s.all() {
			s.few = append(s.few, int32(r))
		}
		s.bits = nil
	}
}

// all is the set's records, ascending.
func (s *set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, rec := range s.few {
			if !yield(int(rec)) {
				return
			}
		}
		for i, word := range s.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// newWants is empty, for so many records.
func newWants(records int) *wants {
	return &wants{clients: map[string]*set{}, users: make([]int32, records)}
}

// of is what a client wants, ascending.
func (w *wants) of(client string) []int {
	s := w.clients[client]
	if s == nil {
		return nil
	}
	return slices.AppendSeq(make([]int, 0, s.n), s.all())
}

// undo takes a request back: the records that it changed for its client.
type undo struct {
	client  string
	changed *set // nil for none
}

// add notes what a request wants.
func (w *wants) add(r Request) undo {
	u := undo{client: r.Client}
	if r.Set {
		for _, rec := range w.of(r.Client) {
			if _, stays := slices.BinarySearch(r.Records, rec); !stays {
				w.note(&u, rec)
			}
		}
	}
	for _, rec := range r.Records {
		if w.clients[r.Client].has(rec) != r.Enable {
			w.note(&u, rec)
		}
	}
	return u
}

// addAll notes what all requests of tickets want.
func (w *wants) addAll(ts []*Ticket) (us []undo) {
	for _, t := range ts {
		for _, r := range t.requests {
			us = append(us, w.add(r))
		}
	}
	return us
}

// note changes whether a client wants a record, in a way that can be taken back.
func (w *wants) note(u *undo, rec int) {
	if u.changed == nil {
		u.changed = &set{}
	}
	w.flip(u.client, rec)
	w.flipIn(u.changed, rec)
}

// flip notes that a client wants a record, or that it does no more.
func (w *wants) flip(client string, rec int) {
	mine := w.clients[client]
	if mine == nil {
		mine = &set{}
		w.clients[client] = mine
	}
	w.flipIn(mine, rec)
	if mine.has(rec) {
		w.users[rec]++
		return
	}
	if w.users[rec]--; mine.n == 0 {
		delete(w.clients, client)
	}
}

// takeBack reverts requests, the last one first.
func (w *wants) takeBack(us []undo) {
	for _, u := range slices.Backward(us) {
		if u.changed == nil {
			continue
		}
		for rec := range u.changed.all() {
			w.flip(u.client, rec)
		}
	}
}

// changed is the records that requests have changed for anybody, ascending.
func (w *wants) changed(us []undo) (all []int) {
	union, total := &set{}, 0
	for _, u := range us {
		if u.changed != nil {
			total += u.changed.n
		}
	}
	if total >= w.dense() { // one by one the first would be moved for each of the others
		union.bits = make([]uint64, (len(w.users)+63)/64)
	}
	for _, u := range us {
		if u.changed == nil {
			continue
		}
		for rec := range u.changed.all() {
			if !union.has(rec) {
				w.flipIn(union, rec)
			}
		}
	}
	return slices.Collect(union.all())
}
