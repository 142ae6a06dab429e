// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring"
)

// place is where a frame is: in which segment, by the number of its first frame, and at
// which byte. The zero place is none.
type place struct {
	segment uint64
	at      int64
}

// row is where an update is in the log, and what lists choose by.
type row struct {
	accept, end place
	key, client uint64 // hashes; key 0 for none
	ended       int64  // nanoseconds since 1970
	state       State  // "": not known, or not kept any more
}

// owner is a client with one of its ops.
type owner struct{ client, ops string }

// state is what the entries of a log add up to. Updates that have ended are left in the log.
type state struct {
	beginning
	rows  []row // of the updates from first on
	first int64
	keys  map[uint64]int64 // hash of client and key: ID
	open  map[int64]*accepted
	wants map[owner]*roaring.Bitmap
	runs  map[int64]*keptRun
	lease map[owner]Lease // of wants that are not for ever
}

var hashes = maphash.MakeSeed()

func hashOf(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(hashes)
	for _, t := range texts {
		h.WriteString(t)
		h.WriteByte(0)
	}
	return max(h.Sum64(), 1)
}

func newState() *state {
	return &state{first: 1, keys: map[uint64]int64{}, open: map[int64]*accepted{}, wants: map[owner]*roaring.Bitmap{},
		runs: map[int64]*keptRun{}, lease: map[owner]Lease{}}
}

// apply takes in an entry that is at a place of the log.
func (s *state) apply(e *entry, at place) error {
	switch {
	case e.Begin != nil:
		return s.begin(e.Begin, at)
	case e.Accept != nil:
		return s.accept(e.Accept, at)
	case e.End != nil:
		return s.end(e.End, at)
	case e.Want != nil:
		if err := e.Want.Which.below(s.Count); err != nil {
			return fmt.Errorf("what client %q wants with ops %q: %w", e.Want.Client, e.Want.Ops, err)
		}
		s.wants[owner{e.Want.Client, e.Want.Ops}] = e.Want.Which.Bitmap
		s.setLease(owner{e.Want.Client, e.Want.Ops}, e.Want.Lease)
	case e.Renew != nil:
		for who, l := range s.lease {
			if e.Renew.Client == "" || who.client == e.Renew.Client {
				s.lease[who] = l.from(e.Renew.At)
			}
		}
	case e.Run != nil:
		s.runs[e.Run.ID] = e.Run
		s.LastRun = max(s.LastRun, e.Run.ID)
	case e.Forget != nil:
		s.forget(e.Forget)
	}
	return nil
}

// begin is a segment's beginning: what holds at that moment follows it.
func (s *state) begin(b *beginning, at place) error {
	if b.Version != version {
		return &ForeignError{segmentName(at.segment),
			fmt.Sprintf("it is of version %d, and this program knows %d", b.Version, version)}
	}
	gone := s.Gone
	if s.beginning = *b; len(s.rows) == 0 {
		s.first = b.Gone + 1
	}
	s.Gone = max(gone, b.Gone)
	clear(s.wants)
	clear(s.lease)
	clear(s.runs)
	clear(s.open)
	if s.Update >= s.first { // of the last ones nothing may be left
		s.make(s.Update)
	}
	s.trim()
	return nil
}

// row is that of an ID; nil where there is none.
func (s *state) row(id int64) *row {
	if id < s.first || id >= s.first+int64(len(s.rows)) {
		return nil
	}
	return &s.rows[id-s.first]
}

func (s *state) accept(a *accepted, at place) error {
	if err := a.Which.below(s.Count); err != nil {
		return fmt.Errorf("update %d: %w", a.ID, err)
	}
	s.open[a.ID] = a
	s.Update = max(s.Update, a.ID)
	r := s.make(a.ID)
	*r = row{accept: at, client: hashOf(a.Client), state: Queued}
	if a.Key != "" {
		r.key = hashOf(a.Client, a.Key)
		s.keys[r.key] = a.ID
	}
	return nil
}

// make is the row of an ID, with those before it where they are missing.
func (s *state) make(id int64) *row {
	if id < s.first { // open for longer than all that is kept
		s.rows = append(make([]row, s.first-id), s.rows...)
		s.first = id
	}
	for id >= s.first+int64(len(s.rows)) {
		s.rows = append(s.rows, row{})
	}
	return s.row(id)
}

func (s *state) end(e *ending, at place) error {
	s.Batch = max(s.Batch, e.Batch)
	if e.Spent != nil {
		if s.Spent == nil {
			s.Spent = map[string]time.Time{}
		}
		maps.Copy(s.Spent, e.Spent.Until)
		maps.DeleteFunc(s.Spent, func(_ string, until time.Time) bool { return until.Before(e.Spent.At) })
	}
	r := s.make(e.ID)
	r.end, r.state, r.ended = at, e.State, nanos(e.Ended)
	a := s.open[e.ID]
	delete(s.open, e.ID)
	if a == nil || e.State != Live || e.Past {
		return nil
	}
	who := owner{a.Client, a.Ops}
	mine := s.wants[who]
	if mine == nil {
		mine = roaring.New()
		s.wants[who] = mine
	}
	switch {
	case a.Set:
		mine.Clear()
		mine.Or(a.Which.Bitmap)
	case a.Enable:
		mine.Or(a.Which.Bitmap)
	default:
		mine.AndNot(a.Which.Bitmap)
	}
	if a.Enable {
		s.setLease(who, Lease{Seconds: a.Lease}.from(e.Ended))
	}
	if mine.IsEmpty() {
		delete(s.wants, who)
		delete(s.lease, who)
	}
	return nil
}

// from is a lease that begins again.
func (l Lease) from(at time.Time) Lease {
	if l.Seconds == 0 {
		return Lease{}
	}
	return Lease{l.Seconds, at.Add(time.Duration(l.Seconds) * time.Second)}
}

func (s *state) setLease(who owner, l Lease) {
	if s.lease[who] = l; l.Seconds == 0 {
		delete(s.lease, who)
	}
}

func (s *state) forget(f *forgotten) {
	s.Gone = max(s.Gone, f.Updates)
	for id := s.first; id <= f.Updates && id < s.first+int64(len(s.rows)); id++ {
		if s.open[id] == nil {
			s.drop(s.row(id), id)
		}
	}
	for _, id := range f.Runs {
		delete(s.runs, id)
	}
	s.trim()
}

func (s *state) drop(r *row, id int64) {
	if r.key != 0 && s.keys[r.key] == id {
		delete(s.keys, r.key)
	}
	*r = row{}
}

// trim takes away the rows at the beginning that are not kept.
func (s *state) trim() {
	n := 0
	for n < len(s.rows) && s.first+int64(n) <= s.Gone && s.rows[n].state == "" {
		n++
	}
	if n > 0 {
		s.rows, s.first = s.rows[n:], s.first+int64(n)
	}
}

// damaged is the IDs of updates that are to be kept and of which something is missing.
func (s *state) damaged() (ids []int64) {
	for i, r := range s.rows {
		id, bad := s.first+int64(i), false
		switch r.state {
		case "":
			bad = id > s.Gone
		case Queued:
			bad = s.open[id] == nil
		default:
			bad = r.accept == place{} || r.end == place{}
		}
		if bad {
			ids = append(ids, id)
		}
	}
	return ids
}

// snapshot is the entries that a segment begins with.
func (s *state) snapshot(each func(*entry) error) error {
	b := s.beginning
	if err := each(&entry{Begin: &b}); err != nil {
		return err
	}
	for _, who := range slices.SortedFunc(maps.Keys(s.wants), compareOwners) {
		if err := each(&entry{Want: &wanted{who.client, who.ops, which{s.wants[who]}, s.lease[who]}}); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.open)) {
		if err := each(&entry{Accept: s.open[id]}); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		if err := each(&entry{Run: s.runs[id]}); err != nil {
			return err
		}
	}
	return nil
}

func compareOwners(a, b owner) int {
	return cmp.Or(strings.Compare(a.client, b.client), strings.Compare(a.ops, b.ops))
}
