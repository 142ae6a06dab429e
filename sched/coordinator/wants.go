// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring"
)

// wants is who wants which records. Clients may want all, and there may be many that want one each:
// bitmaps take what their records take.
type wants struct {
	clients map[string]*roaring.Bitmap // none that wants nothing
	users   []int32                    // clients that want the record
}

// newWants is empty, for so many records.
func newWants(records int) *wants {
	return &wants{clients: map[string]*roaring.Bitmap{}, users: make([]int32, records)}
}

// of lists the records that a client wants, ascending.
func (w *wants) of(client string) []int {
	if w.clients[client] == nil {
		return nil
	}
	return numbers(w.clients[client])
}

func numbers(b *roaring.Bitmap) []int {
	out := make([]int, 0, b.GetCardinality())
	for _, rec := range b.ToArray() {
		out = append(out, int(rec))
	}
	return out
}

// undo takes a request back: the records that it changed for its client.
type undo struct {
	client  string
	changed *roaring.Bitmap
}

// add notes the wishes of a request.
func (w *wants) add(r Request) undo {
	changed, mine := roaring.New(), w.clients[r.Client]
	for _, rec := range r.Records {
		changed.Add(uint32(rec))
	}
	switch {
	case mine == nil && !r.Enable:
		changed.Clear()
	case mine == nil:
	case r.Set:
		changed.Xor(mine)
	case r.Enable:
		changed.AndNot(mine)
	default:
		changed.And(mine)
	}
	w.flip(r.Client, changed)
	return undo{r.Client, changed}
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

// flip changes whether a client wants each of some records.
func (w *wants) flip(client string, changed *roaring.Bitmap) {
	mine := w.clients[client]
	if mine == nil {
		mine = roaring.New()
		w.clients[client] = mine
	}
	for _, rec := range changed.ToArray() {
		if mine.Contains(rec) {
			w.users[rec]--
		} else {
			w.users[rec]++
		}
	}
	if mine.Xor(changed); mine.IsEmpty() {
		delete(w.clients, client)
	} else {
		w.clients[client] = mine.Clone() // which has no room to spare
	}
}

// takeBack reverts requests, the last one first.
func (w *wants) takeBack(us []undo) {
	for _, u := range slices.Backward(us) {
		w.flip(u.client, u.changed)
	}
}

// changed is the records that requests have changed for anybody, ascending.
func (w *wants) changed(us []undo) []int {
	all := roaring.New()
	for _, u := range us {
		all.Or(u.changed)
	}
	return numbers(all)
}

// Snapshot is how many clients want each record, as of one moment.
type Snapshot struct{ users []int32 }

// Users is how many clients want a record: it is enabled while that is above 0.
func (s *Snapshot) Users(record int) int { return int(s.users[record]) }

// Live tells whether a record is enabled.
func (s *Snapshot) Live(record int) bool { return s.users[record] > 0 }

// Enabled is how many records are enabled.
func (s *Snapshot) Enabled() (n int) {
	for range s.Records() {
		n++
	}
	return n
}

// Records is the records that are enabled, ascending.
func (s *Snapshot) Records() iter.Seq[int] {
	return func(yield func(int) bool) {
		for rec, n := range s.users {
			if n > 0 && !yield(rec) {
				return
			}
		}
	}
}

// shown is the committed wants, which all goroutines may read. One goroutine changes it, and
// reads it without the lock.
type shown struct {
	mu      sync.Mutex
	users   []int32
	clients atomic.Int64
	last    *Snapshot // nil where something has changed since
}

// follow shows what requests have changed.
func (s *shown) follow(w *wants, us []undo) {
	all := w.changed(us)
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = nil
	s.clients.Store(int64(len(w.clients)))
	for _, rec := range all {
		s.users[rec] = w.users[rec]
	}
}

func (s *shown) snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = &Snapshot{slices.Clone(s.users)}
	}
	return s.last
}
