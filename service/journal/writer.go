// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"
	"time"
)

// job is what somebody wants written: entries that come together.
type job struct {
	do   func(tx *txn) error // an error refuses this job, and none of the others
	soft bool                // no sync is waited for: see Order.Unsynced
	then func()              // the writer calls it when it is written; nil for nothing
	err  error
	done chan struct{} // closed when it is on the disk, or err says why not
}

// txn is what one sync brings to the disk.
type txn struct {
	*state      // as it was before
	entries     []entry
	update, run int64            // the last IDs
	keys        map[uint64]int64 // index into entries, of clients' keys
}

func (tx *txn) add(e entry) { tx.entries = append(tx.entries, e) }

// maxGroup bounds a transaction.
const maxGroup = 512

// change has something written.
func (s *Store) change(do func(tx *txn) error) error { return s.commit(&job{do: do}) }

// commit hands a job to the writer, and returns when it is on the disk. The writer writes it even
// if the caller stops waiting.
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
			close(j.done)
		}
	}
}

// carryOut writes a group with one sync. A disk that cannot be written is everybody's trouble.
func (s *Store) carryOut(group []*job) {
	tx := &txn{state: s.state, update: s.state.Update, run: s.state.LastRun, keys: map[uint64]int64{}}
	for _, j := range group {
		entries, update, run := len(tx.entries), tx.update, tx.run
		if j.err = j.do(tx); j.err != nil {
			tx.entries, tx.update, tx.run = tx.entries[:entries], update, run
		}
	}
	hard := slices.ContainsFunc(group, func(j *job) bool { return !j.soft })
	if err := s.write(tx.entries, hard); err != nil {
		for _, j := range group {
			if j.err == nil {
				j.err = err
			}
		}
		return
	}
	for _, j := range group {
		if j.err == nil && j.then != nil {
			j.then()
		}
	}
	s.grow()
}

// write puts entries on the disk, and shows them. After an error that will not pass nothing is
// written any more: what is on the disk by then, only the next start can tell.
func (s *Store) write(entries []entry, sync bool) error {
	clean := len(entries) == 0 && (!sync || s.log.synced == s.log.next)
	if err := s.Trouble(); clean || err != nil && !Passing(err) {
		return err
	}
	return s.note(s.append(entries, sync))
}

func (s *Store) append(entries []entry, sync bool) error {
	if f := s.fault.Load(); f != nil && *f != nil {
		if err := (*f)(); err != nil {
			return err
		}
	}
	start := time.Now()
	at, err := s.log.write(entries, sync)
	if err != nil {
		return err
	}
	if f := s.written.Load(); sync && f != nil && *f != nil {
		(*f)(time.Since(start))
	}
	return s.take(entries, at)
}

// grow begins a segment where the last one is long enough. If it cannot, no client hears of it:
// their frames are on the disk, and the next job tries again.
func (s *Store) grow() {
	broken := s.Trouble() != nil && !Passing(s.Trouble())
	if !broken && s.log.end-s.log.fresh > max(s.segment, 2*s.log.fresh) {
		_ = s.note(s.rotate(nil)) // Trouble says it
	}
}

// OnCommit has f told how long each transaction takes to get on the disk; it must not
// block.
func (s *Store) OnCommit(f func(time.Duration)) { s.written.Store(&f) }
