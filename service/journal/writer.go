// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"time"
)

// job is a part of a transaction. It is tried again by itself when the
// transaction that it shared with others failed.
type job struct {
	do   func(tx *txn) error
	then func() // the writer calls it when it is on the disk; nil for nothing
	err  error
	done chan struct{} // closed when it is on the disk, or err says why not
}

// maxGroup bounds a transaction.
const maxGroup = 512

// change has something written.
func (s *Store) change(do func(tx *txn) error) error { return s.commit(&job{do: do}) }

// commit hands a job to the writer, and returns when it is on the disk. It is
// written even if nobody waits for it any more.
func (s *Store) commit(j *job) error {
	j.done = make(chan struct{})
	s.closing.RLock()
	if s.closed {
		s.closing.RUnlock()
		return ErrClosed
	}
	s.jobs <- j
	s.closing.RUnlock()
	<-j.done
	return j.err
}

// run is the writer.
func (s *Store) run() {
	defer close(s.ended)
	for first := range s.jobs {
		group := []*job{first}
		for more := min(len(s.jobs), maxGroup-1); more > 0; more-- {
			group = append(group, <-s.jobs)
		}
		s.carryOut(group)
		for _, j := range group {
			if j.err == nil && j.then != nil {
				j.then()
			}
		}
		for _, j := range group {
			close(j.done)
		}
	}
}

// carryOut writes a group with one transaction, or each by itself, so that nobody
// pays for another's error. A file that cannot be written is everybody's.
func (s *Store) carryOut(group []*job) {
	err := s.note(s.transact(group))
	if err != nil && len(group) > 1 && !hopeless(err) {
		for _, j := range group {
			s.carryOut([]*job{j})
		}
		return
	}
	for _, j := range group {
		j.err = err
	}
}

func (s *Store) transact(group []*job) (err error) {
	begun, err := s.write.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	tx := &txn{Tx: begun, next: s.last}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the first error is the one to tell
		}
	}()
	for _, j := range group {
		if err := j.do(tx); err != nil {
			return err
		}
	}
	if err := tx.close(s.last); err != nil {
		return err
	}
	if f := s.fault.Load(); f != nil && *f != nil {
		if err := (*f)(); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := tx.Commit(); err != nil {
		return err
	}
	if f := s.written.Load(); f != nil && *f != nil {
		(*f)(time.Since(start))
	}
	return s.advance(tx.next)
}

// OnCommit has f told how long each transaction takes to get on the disk; it must not
// block.
func (s *Store) OnCommit(f func(time.Duration)) { s.written.Store(&f) }

// advance writes the head of what is on the disk by now. Where that cannot be done the
// next start cannot tell whether anything is missing: this is the last one.
func (s *Store) advance(next head) error {
	if next == s.last {
		return nil
	}
	s.last = next
	if err := s.tip.put(next); err != nil {
		return &TroubleError{s.tip.file, ErrBroken, err}
	}
	return nil
}
