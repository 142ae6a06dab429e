// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// Done is the state of a run that is through.
const Done State = "done"

// Run is an experiment that was started, and what became of it.
type Run struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Request string    `json:"request"`         // what was asked for, for those who run it; "" in directories of version 1
	State   State     `json:"state"`           // Queued, Running, Done, Failed or Cancelled
	Error   string    `json:"error,omitempty"` // why it failed, or begins again
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Bytes   int64     `json:"bytes,omitempty"` // of its files
}

// keptRun is a run and where its files are.
type keptRun struct {
	Run
	Files []stored `json:"files,omitempty"`
}

// stored is a run's file, which is a file of the directory.
type stored struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Stored string `json:"stored"`
	Sum    string `json:"sum"` // SHA-256
}

// File is one of a run's results.
type File struct {
	Name string `json:"name"`
	Type string `json:"type"` // a media type
	Data []byte `json:"-"`
}

// runPrefix is what the names of runs' files begin with.
const runPrefix = "result-"

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// AddRun writes down that a run waits, and gives it its ID.
func (s *Store) AddRun(name, request string, at time.Time) (r Run, err error) {
	err = s.change(func(tx *txn) error {
		tx.run++
		r = Run{ID: tx.run, Name: name, Request: request, State: Queued, Began: at.UTC()}
		tx.add(entry{Run: &keptRun{Run: r}})
		return nil
	})
	return r, err
}

// BeginRun writes down that a run which waited runs.
func (s *Store) BeginRun(id int64) error {
	return s.changeRun(id, func(r *keptRun) { r.State = Running })
}

// EndRun writes down how a run ended, with its results.
func (s *Store) EndRun(id int64, state State, why string, at time.Time, files []File) error {
	var list []stored
	bytes := int64(0)
	for i, f := range files {
		one := stored{f.Name, f.Type, fmt.Sprintf("%s%d-%d", runPrefix, id, i), sha(f.Data)}
		if err := putFile(s.disk, one.Stored, f.Data); err != nil {
			return s.note(err)
		}
		list, bytes = append(list, one), bytes+int64(len(f.Data))
	}
	if err := s.disk.Sync(); err != nil {
		return s.note(err)
	}
	return s.changeRun(id, func(r *keptRun) { r.State, r.Error, r.Ended, r.Bytes, r.Files = state, why, at.UTC(), bytes, list })
}

// putFile puts a file on the disk, but for its name.
func putFile(d Disk, name string, data []byte) error {
	f, err := d.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// getFile reads one that has a sum.
func getFile(d Disk, name, sum string) ([]byte, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if sha(data) != sum {
		return nil, &DamagedError{name, "it is not as it was written"}
	}
	return data, nil
}

// changeRun changes a run that has not ended.
func (s *Store) changeRun(id int64, change func(*keptRun)) error {
	return s.change(func(tx *txn) error {
		r := tx.runs[id]
		for i := range tx.entries { // in this transaction
			if e := tx.entries[i].Run; e != nil && e.ID == id {
				r = e
			}
		}
		if r == nil || r.State.Final() {
			return fmt.Errorf("run %d has ended: %w", id, ErrNotFound)
		}
		changed := *r
		change(&changed)
		tx.add(entry{Run: &changed})
		return nil
	})
}

// Why a run that has begun waits again, in its Error.
const (
	stoppedFirst = "begins again: the server was stopped while it ran"
	endedFirst   = "begins again: the server ended while it ran"
)

// PutBack writes down that a run which has begun waits for the next start: the server is
// being stopped.
func (s *Store) PutBack(id int64) error {
	return s.changeRun(id, func(r *keptRun) { r.State, r.Error = Queued, cmp.Or(r.Error, stoppedFirst) })
}

// Resume returns the runs that wait, in their order. Those that a killed server has left
// running are among them; but one that was running twice when a server ended has failed: it
// may be what ended them.
func (s *Store) Resume(_ context.Context, at time.Time) (waiting []Run, err error) {
	for _, r := range s.Runs() {
		if r.State == Running {
			if err := s.changeRun(r.ID, func(r *keptRun) { resume(&r.Run, at.UTC()) }); err != nil {
				return nil, err
			}
			resume(&r, at.UTC())
		}
		if r.State == Queued {
			waiting = append(waiting, r)
		}
	}
	return waiting, nil
}

// resume is what becomes of a run that was cut off.
func resume(r *Run, at time.Time) {
	if r.Error == endedFirst {
		r.State, r.Error, r.Ended = Failed, "the server ended twice while it ran", at
		return
	}
	r.State, r.Error = Queued, endedFirst
}

// Runs is all runs, ascending by ID.
func (s *Store) Runs() (out []Run) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, id := range slices.Sorted(maps.Keys(s.state.runs)) {
		out = append(out, s.state.runs[id].Run)
	}
	return out
}

// Run is the run of that ID, with the names and types of its files.
func (s *Store) Run(_ context.Context, id int64) (r Run, files []File, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := s.state.runs[id]
	if found == nil {
		return r, nil, fmt.Errorf("run %d: %w", id, ErrNotFound)
	}
	for _, f := range found.Files {
		files = append(files, File{Name: f.Name, Type: f.Type})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return found.Run, files, nil
}

// File is one of a run's files.
func (s *Store) File(_ context.Context, run int64, name string) (f File, err error) {
	s.mu.RLock()
	r := s.state.runs[run]
	s.mu.RUnlock()
	if r == nil {
		return f, fmt.Errorf("run %d: %w", run, ErrNotFound)
	}
	for _, have := range r.Files {
		if have.Name != name {
			continue
		}
		data, err := getFile(s.disk, have.Stored, have.Sum)
		if errors.Is(err, fs.ErrNotExist) {
			err = &DamagedError{have.Stored, "it is gone"}
		}
		if err != nil {
			return f, fmt.Errorf("file %q of run %d: %w", name, run, explain(s.file, err))
		}
		return File{name, have.Type, data}, nil
	}
	return f, fmt.Errorf("file %q of run %d: %w", name, run, ErrNotFound)
}
