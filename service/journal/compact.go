// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Keep says what Compact leaves. A client's key is known as long as its update is.
type Keep struct {
	Age     time.Duration // of what has ended; 0: however old
	Updates int           // the youngest of those that have ended; 0: however many
	Bytes   int64         // of the results of the youngest runs; 0: however large
}

// How many rows one transaction removes: fewer after one that took longer than slow, and
// more after one that was quick, so that nobody waits long for the writer. A run's
// files may be large.
const (
	fewRows, firstRows, mostRows = 8, 64, 1024
	slow                         = 10 * time.Millisecond
	fewRuns                      = 8
)

// Compact removes what is not to be kept, and gives the room back to the file system
// where it is much. What has not ended is never removed. Of an age the oldest go, up to
// the first that is younger. between is called after each transaction, with how long
// it kept the writer.
func (s *Store) Compact(ctx context.Context, now time.Time, keep Keep,
	between func(took time.Duration)) (removed int64, err error) {
	c := compaction{Store: s, old: -1, between: between}
	if keep.Age > 0 {
		c.old = nanos(now.Add(-keep.Age))
	}
	if c.update, err = s.lastUpdate(ctx, keep.Updates); err != nil {
		return 0, err
	}
	if c.run, err = s.lastRun(ctx, keep.Bytes); err != nil {
		return 0, err
	}
	if err = c.all(ctx, "updates", c.update, firstRows); err == nil {
		err = c.all(ctx, "runs", c.run, fewRuns)
	}
	if err == nil {
		err = c.giveBack(ctx)
	}
	return c.removed, err
}

// lastUpdate is the greatest ID that goes when so many of the youngest updates that
// have ended stay; 0 for none. IDs have no gaps but where something was removed, so
// that nothing needs to be counted but those that have not ended.
func (s *Store) lastUpdate(ctx context.Context, keep int) (last int64, err error) {
	if keep == 0 {
		return 0, nil
	}
	if err := s.read.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM updates").Scan(&last); err != nil {
		return 0, s.failed(err)
	}
	last -= int64(keep)
	err = s.each(ctx, "SELECT id FROM updates WHERE state='queued' ORDER BY id DESC", nil,
		func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			if id > last { // it stays, and is none of those
				last--
			}
			return err
		})
	return max(last, 0), err
}

// lastRun is the greatest ID of a run that goes when the results of the youngest may be
// so large; 0 for none.
func (s *Store) lastRun(ctx context.Context, keep int64) (last int64, err error) {
	if keep == 0 {
		return 0, nil
	}
	sum := int64(0)
	err = s.each(ctx, "SELECT id, bytes FROM runs ORDER BY id DESC", nil, func(scan func(...any) error) error {
		var id, bytes int64
		err := scan(&id, &bytes)
		if sum += bytes; sum > keep && last == 0 {
			last = id
		}
		return err
	})
	return last, err
}

// compaction is one on its way.
type compaction struct {
	*Store
	old         int64 // what ended before this goes; -1: nothing for its age
	update, run int64 // and up to these IDs
	removed     int64
	between     func(took time.Duration)
}

// hasEnded is what goes at all.
const hasEnded = "state NOT IN ('queued', 'running')"

// all removes the rows of a table from its beginning on, up to the first that stays.
func (c *compaction) all(ctx context.Context, table string, last int64, rows int) error {
	most := rows
	if table == "updates" {
		most = mostRows
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, took := 0, time.Duration(0)
		err := c.change(func(tx *txn) (err error) {
			start := time.Now()
			n, err = c.first(tx, table, last, rows)
			took = time.Since(start)
			return err
		})
		if err != nil {
			return err
		}
		c.removed += int64(n)
		c.between(took)
		if n < rows {
			return nil
		}
		if took > slow {
			rows = max(rows/2, fewRows)
		} else if took < slow/2 {
			rows = min(2*rows, most)
		}
	}
}

// first removes as many rows as go, of the first so many.
func (c *compaction) first(tx *txn, table string, last int64, rows int) (n int, err error) {
	found, err := tx.Query("SELECT id, ended FROM "+table+" WHERE "+hasEnded+" ORDER BY id LIMIT ?", rows)
	if err != nil {
		return 0, err
	}
	var id, ended, until int64
	for found.Next() && err == nil {
		if err = found.Scan(&id, &ended); err == nil && id > last && ended >= c.old {
			break
		}
		n, until = n+1, id
	}
	if err = errors.Join(err, found.Err(), found.Close()); err != nil || n == 0 {
		return 0, err
	}
	tx.wrote(until)
	_, err = tx.Exec("DELETE FROM "+table+" WHERE id <= ? AND "+hasEnded, until)
	return n, err
}

// pagesBack is how many free pages are given back at a time.
const pagesBack = 256

// giveBack shortens the file where more than a quarter of it is free: what is less is
// soon written again.
func (c *compaction) giveBack(ctx context.Context) error {
	for ctx.Err() == nil {
		took, more := time.Duration(0), false
		err := c.change(func(tx *txn) error {
			start := time.Now()
			defer func() { took = time.Since(start) }()
			var free, all int64
			if err := tx.QueryRow("SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count").Scan(&free,
				&all); err != nil {
				return err
			}
			if more = free > all/4 && free > pagesBack; !more {
				return nil
			}
			rows, err := tx.Query(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pagesBack))
			if err != nil {
				return err
			}
			for rows.Next() { // a page a row
			}
			return errors.Join(rows.Err(), rows.Close())
		})
		if err != nil || !more {
			return err
		}
		c.between(took)
	}
	return context.Cause(ctx)
}

// Size is how many bytes the file takes, without SQLite's own log; 0 where that cannot be
// told.
func (s *Store) Size() int64 {
	info, err := os.Stat(s.file)
	if err != nil {
		return 0
	}
	return info.Size()
}
