// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Done is the state of a run that is through.
const Done State = "done"

// Run is an experiment that was started, and what became of it.
type Run struct {
	ID           int64
	Name         string
	State        State // Running, Done, Failed or Cancelled
	Error        string
	Began, Ended time.Time
	Bytes        int64 // of its files
}

// File is one of a run's results.
type File struct {
	Name, Type string // Type is a media type
	Data       []byte
}

// BeginRun writes down that a run begins, and gives it its ID.
func (s *Store) BeginRun(name string, at time.Time) (r Run, err error) {
	r = Run{Name: name, State: Running, Began: at}
	err = s.change(func(tx *sql.Tx) error {
		row, err := tx.Exec("INSERT INTO runs (name, state, began) VALUES (?, ?, ?)", name, Running, nanos(at))
		if err != nil {
			return err
		}
		r.ID, err = row.LastInsertId()
		return err
	})
	return r, err
}

// EndRun writes down how a run ended, with its results.
func (s *Store) EndRun(id int64, state State, why string, at time.Time, files []File) error {
	return s.change(func(tx *sql.Tx) error {
		bytes := int64(0)
		for _, f := range files {
			bytes += int64(len(f.Data))
			if _, err := tx.Exec("INSERT INTO files VALUES (?, ?, ?, ?)", id, f.Name, f.Type, f.Data); err != nil {
				return err
			}
		}
		row, err := tx.Exec("UPDATE runs SET state=?, error=?, ended=?, bytes=? WHERE id=? AND state=?", state, why,
			nanos(at), bytes, id, Running)
		if err != nil {
			return err
		}
		if n, err := row.RowsAffected(); err != nil || n != 1 {
			return fmt.Errorf("run %d is not running: %w", id, ErrNotFound)
		}
		return nil
	})
}

// AbandonRuns ends the runs that a killed server has left running.
func (s *Store) AbandonRuns(at time.Time) error {
	return s.change(func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE runs SET state=?, error=?, ended=? WHERE state=?", Failed, "the server ended first",
			nanos(at), Running)
		return err
	})
}

const runColumns = "id, name, state, error, began, ended, bytes"

func scanRun(scan func(...any) error) (r Run, err error) {
	var began, ended int64
	err = scan(&r.ID, &r.Name, &r.State, &r.Error, &began, &ended, &r.Bytes)
	r.Began, r.Ended = fromNanos(began), fromNanos(ended)
	return r, err
}

// Runs lists runs, ascending by ID, those behind after; limit 0 is 100.
func (s *Store) Runs(ctx context.Context, after int64, limit int) (out []Run, err error) {
	if limit == 0 {
		limit = 100
	}
	err = s.each(ctx, "SELECT "+runColumns+" FROM runs WHERE id > ? ORDER BY id LIMIT ?", []any{after, limit},
		func(scan func(...any) error) error {
			r, err := scanRun(scan)
			out = append(out, r)
			return err
		})
	return out, err
}

// Run is the run of that ID, with the names and types of its files.
func (s *Store) Run(ctx context.Context, id int64) (r Run, files []File, err error) {
	if r, err = scanRun(s.read.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE id=?", id).Scan); err != nil {
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
	if err = s.read.QueryRowContext(ctx, "SELECT type, data FROM files WHERE run=? AND name=?", run, name).Scan(&f.Type,
		&f.Data); err != nil {
		return f, s.absent(fmt.Sprintf("file %q of run %d", name, run), err)
	}
	return f, nil
}
