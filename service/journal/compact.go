// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Keep says what Compact leaves. A client's key is known as long as its update is.
type Keep struct {
	Age     time.Duration // of what has ended; 0: however old
	Updates int           // the youngest of those that have ended; 0: however many
	Bytes   int64         // of the results of the youngest runs; 0: however large
}

// chunk is how many rows one transaction removes at most, so that nobody waits long
// for the writer.
const chunk = 500

// Compact removes what is not to be kept, and gives the room back to the file
// system. What has not ended is never removed. between is called after each
// transaction.
func (s *Store) Compact(ctx context.Context, now time.Time, keep Keep, between func()) (removed int64, err error) {
	var old int64
	if keep.Age > 0 {
		old = nanos(now.Add(-keep.Age))
	}
	few := keep.Updates
	if few == 0 {
		few = -1 // no limit
	}
	for _, stmt := range []struct {
		sql  string
		args []any
	}{
		{`DELETE FROM updates WHERE id IN (SELECT id FROM updates WHERE state <> ? AND ended < ? LIMIT ?)`,
			[]any{Queued, old, chunk}},
		{`DELETE FROM updates WHERE ?2 >= 0 AND id IN (SELECT id FROM updates WHERE state <> ?1 ORDER BY id DESC LIMIT ?3 OFFSET max(?2, 0))`, []any{Queued, few, chunk}},
		{`DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE state <> ? AND ended < ? LIMIT ?)`,
			[]any{Running, old, chunk}},
		{`DELETE FROM runs WHERE ?2 > 0 AND state <> ?1 AND
			(SELECT SUM(bytes) FROM runs AS younger WHERE younger.id >= runs.id) > ?2`, []any{Running, keep.Bytes}},
	} {
		for more := true; more; {
			n, err := s.remove(ctx, stmt.sql, stmt.args)
			if err != nil {
				return removed, err
			}
			removed += n
			between()
			more = n == chunk
		}
	}
	return removed, s.giveBack()
}

func (s *Store) remove(ctx context.Context, stmt string, args []any) (n int64, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	err = s.change(func(tx *sql.Tx) error {
		row, err := tx.Exec(stmt, args...)
		if err != nil {
			return err
		}
		n, err = row.RowsAffected()
		return err
	})
	return n, err
}

// pagesBack is how many free pages Compact gives back at a time.
const pagesBack = 4096

// giveBack shortens the file, and empties SQLite's own journal into it. Readers may
// be in the way of the latter: then the next time does it.
func (s *Store) giveBack() error {
	err := s.change(func(tx *sql.Tx) error {
		rows, err := tx.Query(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pagesBack))
		if err != nil {
			return err
		}
		for rows.Next() { // a page a row
		}
		return errors.Join(rows.Err(), rows.Close())
	})
	if err != nil {
		return err
	}
	if _, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return s.failed(err)
	}
	return nil
}

// Size is how many bytes the file takes, without SQLite's own journal.
func (s *Store) Size(ctx context.Context) (n int64, err error) {
	if err = s.read.QueryRowContext(ctx,
		"SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(&n); err != nil {
		err = s.failed(err)
	}
	return n, err
}
