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

// set is a set of records: a bit for each, since clients may want all.
type set struct {
	bits []uint64
	n    int
}

func (w *wants) newSet() *set { return &set{bits: make([]uint64, (len(w.users)+63)/64)} }

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

// newWants is nobody's, of so many records.
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
func (w *wants) flip(client string, rec int) {
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

// changed is the records that requests have changed for anybody, nil for none.
func (w *wants) changed(us []undo) (all *set) {
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
