// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Done is the state of a run that is through.
const Done State = "done"

// Run is an experiment that was started, and what became of it.
type Run struct {
	ID           int64
	Name         string
	Request      string // what was asked for, for those who run it; "" in files of version 1
	State        State  // Queued, Running, Done, Failed or Cancelled
	Error        string // why it failed, or begins again
	Began, Ended time.Time
	Bytes        int64 // of its files
}

// File is one of a run's results.
type File struct {
	Name, Type string // Type is a media type
	Data       []byte
}

// AddRun writes down that a run waits, and gives it its ID.
func (s *Store) AddRun(name, request string, at time.Time) (r Run, err error) {
	r = Run{Name: name, Request: request, State: Queued, Began: at}
	err = s.change(func(tx *txn) error {
		sum := runSum(&r)
		tx.wrote(sum)
		row, err := tx.Exec("INSERT INTO runs (name, request, state, began, sum) VALUES (?, ?, ?, ?, ?)", name, request,
			Queued, nanos(at), sum)
		if err != nil {
			return err
		}
		r.ID, err = row.LastInsertId()
		return err
	})
	return r, err
}

// BeginRun writes down that a run which waited runs.
func (s *Store) BeginRun(id int64) error {
	return s.change(func(tx *txn) error {
		return s.changeRun(tx, id, func(r *Run) { r.State = Running })
	})
}

// EndRun writes down how a run ended, with its results.
func (s *Store) EndRun(id int64, state State, why string, at time.Time, files []File) error {
	return s.change(func(tx *txn) error {
		bytes := int64(0)
		for _, f := range files {
			bytes += int64(len(f.Data))
			sum := sumOf(id, f.Name, f.Type, f.Data)
			tx.wrote(sum)
			if _, err := tx.Exec("INSERT INTO files VALUES (?, ?, ?, ?, ?)", id, f.Name, f.Type, f.Data, sum); err != nil {
				return err
			}
		}
		return s.changeRun(tx, id, func(r *Run) { r.State, r.Error, r.Ended, r.Bytes = state, why, at, bytes })
	})
}

// changeRun changes a run that has not ended.
func (s *Store) changeRun(tx *txn, id int64, change func(*Run)) error {
	r, err := s.scanRun(tx.QueryRow("SELECT "+runColumns+" FROM runs WHERE id=?", id).Scan)
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.State.Final() {
		return fmt.Errorf("run %d has ended: %w", id, ErrNotFound)
	}
	if err != nil {
		return err
	}
	change(&r)
	sum := runSum(&r)
	tx.wrote(sum)
	_, err = tx.Exec("UPDATE runs SET state=?, error=?, ended=?, bytes=?, sum=? WHERE id=?", r.State, r.Error,
		nanos(r.Ended), r.Bytes, sum, id)
	return err
}

// Why a run that has begun waits again, in its Error.
const (
	stoppedFirst = "begins again: the server was stopped while it ran"
	endedFirst   = "begins again: the server ended while it ran"
)

// PutBack writes down that a run which has begun waits for the next start: the server is
// being stopped.
func (s *Store) PutBack(id int64) error {
	return s.change(func(tx *txn) error {
		return s.changeRun(tx, id, func(r *Run) { r.State, r.Error = Queued, cmp.Or(r.Error, stoppedFirst) })
	})
}

// Resume returns the runs that wait, in their order. Those that a killed server has left
// running are among them; but one that was running twice when a server ended has failed: it
// may be what ended them.
func (s *Store) Resume(ctx context.Context, at time.Time) (waiting []Run, err error) {
	var cut []int64
	err = s.each(ctx, "SELECT "+runColumns+" FROM runs WHERE NOT "+hasEnded+" ORDER BY id", nil,
		func(scan func(...any) error) error {
			r, err := s.scanRun(scan)
			if r.State == Running {
				cut = append(cut, r.ID)
				resume(&r, at)
			}
			if r.State == Queued {
				waiting = append(waiting, r)
			}
			return err
		})
	if err != nil || cut == nil {
		return waiting, err
	}
	return waiting, s.change(func(tx *txn) error {
		for _, id := range cut {
			if err := s.changeRun(tx, id, func(r *Run) { resume(r, at) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// resume is what becomes of a run that was cut off.
func resume(r *Run, at time.Time) {
	if r.Error == endedFirst {
		r.State, r.Error, r.Ended = Failed, "the server ended twice while it ran", at
		return
	}
	r.State, r.Error = Queued, endedFirst
}

const runColumns = "id, name, request, state, error, began, ended, bytes, sum"

func (s *Store) scanRun(scan func(...any) error) (r Run, err error) {
	var began, ended, sum int64
	err = s.badCell(scan(&r.ID, &r.Name, &r.Request, &r.State, &r.Error, &began, &ended, &r.Bytes, &sum))
	r.Began, r.Ended = fromNanos(began), fromNanos(ended)
	if err == nil && sum != runSum(&r) {
		err = s.damagedRow("run %d", r.ID)
	}
	return r, err
}

// Runs lists runs, ascending by ID, those behind after; limit 0 is 100.
func (s *Store) Runs(ctx context.Context, after int64, limit int) (out []Run, err error) {
	if limit == 0 {
		limit = 100
	}
	err = s.each(ctx, "SELECT "+runColumns+" FROM runs WHERE id > ? ORDER BY id LIMIT ?", []any{after, limit},
		func(scan func(...any) error) error {
			r, err := s.scanRun(scan)
			out = append(out, r)
			return err
		})
	return out, err
}

// Run is the run of that ID, with the names and types of its files.
func (s *Store) Run(ctx context.Context, id int64) (r Run, files []File, err error) {
	if r, err = s.scanRun(s.read.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE id=?", id).Scan); err != nil {
		return r, nil, s.absent(fmt.Sprintf("run %d", id), err)
	}
	err = s.each(ctx, "SELECT name, type FROM files WHERE run=? ORDER BY name", []any{id},
		func(scan func(...any) error) error {
			var f File
			err := scan(&f.Name, &f.Type)
			files = append(files, f)
			return err
		})
	return r, files, err
}

// File is one of a run's files.
func (s *Store) File(ctx context.Context, run int64, name string) (f File, err error) {
	f.Name = name
	var sum int64
	if err = s.read.QueryRowContext(ctx, "SELECT type, data, sum FROM files WHERE run=? AND name=?", run, name).Scan(&f.Type,
		&f.Data, &sum); err != nil {
		return f, s.absent(fmt.Sprintf("file %q of run %d", name, run), s.badCell(err))
	}
	if sum != sumOf(run, name, f.Type, f.Data) {
		return f, s.damagedRow("file %q of run %d", name, run)
	}
	return f, nil
}
