// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Keep says what Compact leaves. A client's key is known as long as its update is.
type Keep struct {
	Age     time.Duration // of ended updates and runs; 0: any
	Updates int           // the youngest of those that have ended; 0: however many
	Bytes   int64         // of the results of the youngest runs; 0: however large
}

// Compact forgets ended updates beyond keep, and removes the segments that hold only such. It
// never forgets an update that has not ended. Of updates beyond an age it forgets the oldest, up to
// the first that is younger. It calls between after forgetting and before removing.
func (s *Store) Compact(_ context.Context, now time.Time, keep Keep, between func()) (removed int64, err error) {
	var files []string // of runs that go
	err = s.commit(&job{
		do: func(tx *txn) error {
			f := &forgotten{}
			f.Updates, removed = tx.outdated(now, keep)
			f.Runs = tx.outdatedRuns(now, keep)
			for _, id := range f.Runs {
				for _, file := range tx.runs[id].Files {
					files = append(files, file.Stored)
				}
			}
			if removed += int64(len(f.Runs)); removed > 0 {
				tx.add(entry{Forget: f})
			}
			return nil
		},
		then: between,
	})
	if err != nil {
		return 0, err
	}
	return removed, s.commit(&job{do: func(*txn) error {
		for _, name := range files {
			if err := s.disk.Remove(name); err != nil {
				return err
			}
		}
		err := s.log.removeBefore(s.oldest())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.measure()
		return err
	}})
}

// oldest is the first segment that holds anything. It may be that of any update: one that is open
// for long is written again at the beginning of each segment, and those behind it are not.
func (s *Store) oldest() uint64 {
	first := s.log.last()
	for i := range s.state.rows {
		if r := &s.state.rows[i]; (r.accept != place{}) {
			first = min(first, r.accept.segment)
		}
	}
	return first
}

// outdated is the last ID that goes, and how many go.
func (s *state) outdated(now time.Time, keep Keep) (last, n int64) {
	ended := func(id int64) bool { return s.row(id).state != "" && s.open[id] == nil } // its end may be damaged
	to := s.first + int64(len(s.rows))
	if keep.Updates > 0 {
		young := 0
		for id := to - 1; id >= s.first; id-- {
			if !ended(id) {
				continue
			}
			if young++; young > keep.Updates {
				last = id
				break
			}
		}
	}
	if keep.Age > 0 {
		old := nanos(now.Add(-keep.Age))
		for id := s.first; id < to; id++ {
			if ended(id) && id > last {
				if s.row(id).ended >= old {
					break
				}
				last = id
			}
		}
	}
	for id := s.first; id <= last; id++ {
		if ended(id) {
			n++
		}
	}
	return last, n
}

// outdatedRuns is the runs that go.
func (s *state) outdatedRuns(now time.Time, keep Keep) (gone []int64) {
	ids := slices.Sorted(maps.Keys(s.runs))
	bytes, last := int64(0), int64(0)
	for _, id := range slices.Backward(ids) {
		if bytes += s.runs[id].Bytes; keep.Bytes > 0 && bytes > keep.Bytes && last == 0 {
			last = id
		}
	}
	for _, id := range ids {
		r := s.runs[id]
		if !r.State.Final() {
			continue
		}
		if id > last && (keep.Age == 0 || !r.Ended.Before(now.Add(-keep.Age))) {
			break
		}
		gone = append(gone, id)
	}
	return gone
}
