// SPDX-License-Identifier: Apache-2.0

// Package journal keeps what a service has promised: updates as they were accepted and answered,
// what every client wants, and the results of runs. When a method returns, its change is on the
// disk.
//
// It is a log. Each update adds two frames of a few hundred bytes. The present state is in
// memory; ended updates are read from the log where they lie. The frames of the segments are
// chained, so a start finds every bit, frame and page that has changed since it was written.
// The log is small enough to be tested on a disk that lies (simulated_test.go).
//
// Writers wait for one goroutine, which takes all waiting jobs and puts them on the disk with one
// sync (group commit, as in PostgreSQL's commit_delay and MySQL's binlog): k clients pay for one
// sync.
package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// version is that of the log.
const version = 4

// Identity says which table of records a directory is for. A directory of another table is converted
// where the names of both tables are known, and refused otherwise.
type Identity struct {
	Records string   // name of the table
	Hash    string   // of its records
	Count   int      // records
	Names   []string // of the records, of which several may have one; nil: not known
}

// Store is an open directory. All methods may be called by many at the same time.
type Store struct {
	file string // what errors name
	disk Disk
	log  *log // the writer's

	mu    sync.RWMutex // guards what follows; the writer alone changes it
	state *state
	size  int64

	jobs  chan *job
	ended chan struct{}

	closing sync.RWMutex // guards jobs' closing against senders
	closed  bool

	remapped []Update // see Remapped
	damage   []string // see Damage
	harm     []harm   // found at the start
	segment  int64    // bytes after which another segment is begun

	trouble atomic.Pointer[error] // what the last transaction failed with
	fault   atomic.Pointer[func() error]
	written atomic.Pointer[func(time.Duration)]
}

// segmentBytes is how much is written until a segment is closed: updates that are not kept any
// more are removed by the segment.
const segmentBytes = 4 << 20

// ErrClosed is the answer of a store that is closed, or about to be.
var ErrClosed = errors.New("closed: nothing more is accepted")

// Open opens a directory, and makes it where it is missing. One that is refused is left as
// it is.
func Open(ctx context.Context, dir string, id Identity) (*Store, error) {
	d, err := makeDirectory(dir)
	if err != nil {
		return nil, explain(dir, err)
	}
	s, err := open(ctx, d, id, func() (older, error) { return openOlder(ctx, d.path) })
	if err != nil {
		return nil, explain(dir, err)
	}
	go s.run()
	return s, nil
}

// older is what a directory holds that has no log yet; nil for nothing.
type older interface {
	emit(each func(*entry) error) error
	names() ([]byte, error) // packed
	close() error
}

// open opens a disk without the writer.
func open(ctx context.Context, d Disk, id Identity, before func() (older, error)) (_ *Store, err error) {
	s := &Store{disk: d, jobs: make(chan *job, 1024), ended: make(chan struct{}), segment: segmentBytes}
	if dir, ok := d.(*directory); ok {
		s.file = dir.path
	}
	if err := d.Lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	if err := s.load(before); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := s.follow(id); err != nil {
		return nil, err
	}
	s.damage = s.findDamage()
	return s, s.removeOrphans()
}

// load reads the log, or begins one where there is none.
func (s *Store) load(before func() (older, error)) error {
	s.state = newState()
	r, err := readLog(s.disk, s.state.apply)
	if err != nil {
		return err
	}
	s.log, s.harm = r.log, r.harms
	if len(r.segments) > 0 {
		if err := s.log.resume(); err != nil {
			return err
		}
		s.measure()
		return nil
	}
	s.log.next, s.log.synced = 1, 1
	if err := s.log.openHead(); err != nil {
		return err
	}
	old, err := before()
	if err != nil || old == nil { // a new directory: follow begins it
		return err
	}
	return errors.Join(s.bring(old), old.close())
}

// bring makes a log of an earlier version's data.
func (s *Store) bring(old older) error {
	list, err := old.names()
	if err != nil {
		return err
	}
	if list != nil {
		if err := putNames(s.disk, &s.state.beginning, list); err != nil {
			return err
		}
	}
	name, sum := s.state.Names, s.state.NamesSum
	if err := s.log.rotate(func(each func(*entry) error) error {
		return old.emit(func(e *entry) error {
			switch {
			case e.Begin != nil:
				e.Begin.Names, e.Begin.NamesSum, e.Begin.Backup, e.Begin.Ends = name, sum, false, false
			case e.File != nil:
				return putFile(s.disk, e.File.Name, e.File.Data)
			case e.Whole:
				return nil
			}
			return each(e)
		})
	}, s.state.apply); err != nil {
		return err
	}
	s.measure()
	return nil
}

// rotate begins a segment with the present state, and more entries.
func (s *Store) rotate(more []entry) error {
	var entries []entry
	var at []place
	s.state.Link = s.log.link
	if err := s.log.rotate(func(each func(*entry) error) error {
		err := s.state.snapshot(each)
		for i := range more {
			if err == nil {
				err = each(&more[i])
			}
		}
		return err
	}, func(e *entry, where place) error {
		entries, at = append(entries, *e), append(at, where)
		return nil
	}); err != nil {
		return err
	}
	return s.take(entries, at)
}

// take takes entries in that are on the disk by now.
func (s *Store) take(entries []entry, at []place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.measure()
	for i := range entries {
		if err := s.state.apply(&entries[i], at[i]); err != nil {
			return err
		}
	}
	return nil
}

// measure notes how much there is.
func (s *Store) measure() {
	s.size = s.log.end
	for _, n := range s.log.sizes {
		s.size += n
	}
}

// removeOrphans removes what a server that was killed has begun and not finished.
func (s *Store) removeOrphans() error {
	names, err := s.disk.List()
	if err != nil {
		return err
	}
	needed := map[string]bool{s.state.Names: true}
	for _, r := range s.state.runs {
		for _, f := range r.Files {
			needed[f.Stored] = true
		}
	}
	for _, name := range names {
		ours := strings.HasPrefix(name, runPrefix) || strings.HasPrefix(name, namesPrefix) ||
			strings.HasPrefix(name, segmentPrefix) && strings.HasSuffix(name, unfinished)
		if ours && !needed[name] {
			err = errors.Join(err, s.disk.Remove(name))
		}
	}
	return err
}

// Close ends the writer once it has written what waits, and closes the files. The error of one
// whose directory was removed says so.
func (s *Store) Close() error {
	s.closing.Lock()
	again := s.closed
	s.closed = true
	if !again {
		close(s.jobs)
	}
	s.closing.Unlock()
	if again {
		return ErrClosed
	}
	<-s.ended
	return errors.Join(s.same(), s.log.flush(), s.release())
}

// release closes whatever is open, the lock last.
func (s *Store) release() (err error) {
	if s.log != nil {
		err = s.log.close()
	}
	return errors.Join(err, s.disk.Unlock())
}

// Size is how many bytes the log takes.
func (s *Store) Size() int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.size
}

// Damage is what of the past cannot be read any more, a sentence each: found at the start, and
// all of it in ended updates and runs. A damage of the present state refuses the start.
func (s *Store) Damage() []string { return s.damage }

func (s *Store) findDamage() (list []string) {
	ids := s.state.damaged()
	if len(ids) > 0 {
		list = append(list, fmt.Sprintf("%d updates: %s", len(ids), ranges(ids)))
	}
	for _, h := range s.harm {
		list = append(list, h.String())
	}
	return list
}

// ranges writes ascending numbers as 3, 5-9.
func ranges(ids []int64) string {
	var out []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if text := fmt.Sprint(ids[i]); j > i {
			out = append(out, fmt.Sprintf("%s-%d", text, ids[j]))
		} else {
			out = append(out, text)
		}
		i = j + 1
	}
	return strings.Join(out, ", ")
}
