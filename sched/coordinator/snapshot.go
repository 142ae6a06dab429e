// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"iter"
	"slices"
	"sync"
)

// Snapshot is how many clients want each record, as of one moment.
type Snapshot struct {
	users   []int32
	enabled int
}

// Users is how many clients want a record: it is enabled while that is above 0.
func (s *Snapshot) Users(record int) int { return int(s.users[record]) }

// Live tells whether a record is enabled.
func (s *Snapshot) Live(record int) bool { return s.users[record] > 0 }

// Enabled is how many records are enabled.
func (s *Snapshot) Enabled() int { return s.enabled }

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

// shown is what everybody may see of the wants: what was committed. One goroutine
// changes it; that one reads it without the lock.
type shown struct {
	mu      sync.Mutex
	users   []int32
	enabled int
	clients int
	last    *Snapshot // nil where something has changed since
}

// live is for the goroutine that changes it.
func (s *shown) live(record int) bool { return s.users[record] > 0 }

// follow shows what requests have changed.
func (s *shown) follow(w *wants, us []undo) {
	all := w.changed(us)
	if len(all) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.clients = nil, len(w.clients)
	for _, rec := range all {
		was, is := s.users[rec] > 0, w.users[rec] > 0
		s.users[rec] = w.users[rec]
		switch {
		case is && !was:
			s.enabled++
		case was && !is:
			s.enabled--
		}
	}
}

// clientsNow is how many clients want something.
func (s *shown) clientsNow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients
}

func (s *shown) snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = &Snapshot{slices.Clone(s.users), s.enabled}
	}
	return s.last
}
