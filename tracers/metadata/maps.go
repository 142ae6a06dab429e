// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"sync"
	"sync/atomic"

	"github.com/textpoke/textpoke/records"
)

// syncMap is the standard library's map for readers that do not wait.
type syncMap struct {
	m      sync.Map
	change sync.Mutex // n goes with m
	n      atomic.Int64
}

func (s *syncMap) Lookup(at records.Addr) *Record {
	if r, ok := s.m.Load(at); ok {
		return r.(*Record)
	}
	return nil
}

func (s *syncMap) Set(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	s.change.Lock()
	defer s.change.Unlock()
	if _, had := s.m.Swap(r.Func, r); !had {
		s.n.Add(1)
	}
	return nil
}

func (s *syncMap) Remove(at records.Addr) bool {
	s.change.Lock()
	defer s.change.Unlock()
	_, had := s.m.LoadAndDelete(at)
	if had {
		s.n.Add(-1)
	}
	return had
}

func (s *syncMap) Len() int { return int(s.n.Load()) }

// lockedMap is a plain map behind a lock that readers share.
type lockedMap struct {
	mu sync.RWMutex
	m  map[records.Addr]*Record
}

func (l *lockedMap) Lookup(at records.Addr) *Record {
	l.mu.RLock()
	r := l.m[at]
	l.mu.RUnlock()
	return r
}

func (l *lockedMap) Set(r *Record) error {
	if err := r.check(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.m[r.Func] = r
	return nil
}

func (l *lockedMap) Remove(at records.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, had := l.m[at]
	delete(l.m, at)
	return had
}

func (l *lockedMap) Len() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.m)
}
