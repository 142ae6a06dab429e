// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrKeyReused refuses a client's key that it has used for another request.
var ErrKeyReused = errors.New("the key is used for another request of this client")

// ErrNotFound says that there is no such thing, or no more.
var ErrNotFound = errors.New("not found")

// Accept writes an update down, which is given its ID. Once it is on the disk, and
// before anything else is written, entered is called with it. Where the client has
// used its key before, for the same request, entered is not called, and that update
// is returned.
func (s *Store) Accept(o Order, entered func(Update)) (u Update, err error) {
	which := encode(o.Which)
	var fresh bool
	var refused error // what is wrong with this one must not fail the others' transaction
	err = s.commit(&job{
		then: func() {
			if fresh {
				entered(u)
			}
		},
		do: func(tx *txn) error {
			fresh, refused = false, nil
			if o.Key != "" {
				u, refused = s.byKey(context.Background(), tx, o.Client, o.Key, o.Digest)
				if !errors.Is(refused, ErrNotFound) {
					return nil
				}
				refused = nil
			}
			u, fresh = o.Update, true
			u.State = Queued
			asked := askedSum(&u, o.Digest)
			row, err := tx.Stmt(s.insert).Exec(o.Client, o.Key, o.Ops, o.Enable, o.Records, which, o.Digest, Queued,
				nanos(o.Submitted), nanos(o.Deadline), asked, toldSum(&u))
			if err != nil {
				return err
			}
			tx.wrote(asked)
			u.ID, err = row.LastInsertId()
			return err
		},
	})
	return u, cmp.Or(err, refused)
}

// Pass returns when all that was written before has been entered.
func (s *Store) Pass() error { return s.commit(&job{do: func(*txn) error { return nil }}) }

// Answer writes down how updates ended, in final states, and what their clients
// want now; all of it or nothing.
func (s *Store) Answer(us []Update, wants []Want) error {
	blobs := make([][]byte, len(wants))
	for i, w := range wants {
		blobs[i] = encode(w.Which)
	}
	return s.change(func(tx *txn) error {
		for _, u := range us {
			tx.next.batch = max(tx.next.batch, u.Batch)
			tx.wrote(toldSum(&u))
			row, err := tx.Stmt(s.finish).Exec(u.State, u.Batch, u.Error, nanos(u.Began), nanos(u.Ended), toldSum(&u), u.ID)
			if err != nil {
				return err
			}
			if n, err := row.RowsAffected(); err != nil || n != 1 {
				return fmt.Errorf("update %d is answered already (%w)", u.ID, err)
			}
		}
		for i, w := range wants {
			sum := sumOf(w.Client, w.Ops, blobs[i])
			tx.wrote(sum)
			var err error
			if len(w.Which) == 0 {
				_, err = tx.Stmt(s.forget).Exec(w.Client, w.Ops)
			} else {
				_, err = tx.Stmt(s.want).Exec(w.Client, w.Ops, blobs[i], sum)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// LastBatch is the greatest number of a batch that was ever answered.
func (s *Store) LastBatch(ctx context.Context) (n int64, err error) {
	_, h, err := readIdentity(ctx, s.read)
	switch {
	case errors.Is(err, errSums):
		err = &DamagedError{s.file, err.Error()}
	case err != nil:
		err = s.failed(err)
	}
	return h.batch, err
}

// Wants is what every client wants, by client and ops.
func (s *Store) Wants(ctx context.Context) (out []Want, err error) {
	err = s.each(ctx, "SELECT client, ops, which, sum FROM wants ORDER BY client, ops", nil,
		func(scan func(...any) error) error {
			var w Want
			var which []byte
			var sum int64
			if err := s.badCell(scan(&w.Client, &w.Ops, &which, &sum)); err != nil {
				return err
			}
			if sum != sumOf(w.Client, w.Ops, which) {
				return s.damagedRow("what client %.40q wants with ops %.40q", w.Client, w.Ops)
			}
			if w.Which, err = decode(which, s.count); err != nil {
				return &DamagedError{s.file, fmt.Sprintf("what client %q wants with ops %q: %v", w.Client, w.Ops, err)}
			}
			out = append(out, w)
			return nil
		})
	return out, err
}

// HasWants tells whether a client wants anything with one ops.
func (s *Store) HasWants(ctx context.Context, client, ops string) (yes bool, err error) {
	if err = s.read.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM wants WHERE client=? AND ops=?)", client,
		ops).Scan(&yes); err != nil {
		err = s.failed(err)
	}
	return yes, err
}

// Unanswered is what was accepted and has not ended, in that order.
func (s *Store) Unanswered(ctx context.Context) (out []Order, err error) {
	err = s.each(ctx, "SELECT "+columns+", which FROM updates WHERE state='queued' ORDER BY id", nil,
		func(scan func(...any) error) error {
			var o Order
			var which []byte
			if o.Update, err = s.scanUpdate(scan, &o.Digest, &which); err != nil {
				return err
			}
			if o.Which, err = decode(which, s.count); err != nil {
				return &DamagedError{s.file, fmt.Sprintf("records of update %d: %v", o.ID, err)}
			}
			out = append(out, o)
			return nil
		})
	return out, err
}

// Update is the update of that ID.
func (s *Store) Update(ctx context.Context, id int64) (Update, error) {
	u, err := s.scanUpdate(s.read.QueryRowContext(ctx, "SELECT "+columns+" FROM updates WHERE id=?", id).Scan, new(string))
	if err != nil {
		return u, s.absent(fmt.Sprintf("update %d", id), err)
	}
	return u, nil
}

// ByKey is the update for which a client has used a key; ErrKeyReused if that was
// another request.
func (s *Store) ByKey(ctx context.Context, client, key, digest string) (Update, error) {
	u, err := s.byKey(ctx, s.read, client, key, digest)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrKeyReused) && !explained(err) {
		err = s.failed(err)
	}
	return u, err
}

func (s *Store) byKey(ctx context.Context, q querier, client, key, digest string) (Update, error) {
	var then string
	u, err := s.scanUpdate(q.QueryRowContext(ctx, "SELECT "+columns+" FROM updates WHERE client=? AND key=?", client,
		key).Scan, &then)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return u, ErrNotFound
	case err == nil && then != digest:
		return u, ErrKeyReused
	}
	return u, err
}

// Updates lists updates.
func (s *Store) Updates(ctx context.Context, q Query) (out []Update, err error) {
	where, args := []string{"id > ?"}, []any{q.After}
	if q.Client != "" {
		where, args = append(where, "client=?"), append(args, q.Client)
	}
	if q.State != "" {
		where = append(where, "state='"+string(q.State)+"'") // a constant, as the index of some states is
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	stmt := "SELECT " + columns + " FROM updates WHERE " + strings.Join(where, " AND ") + " ORDER BY id LIMIT ?"
	err = s.each(ctx, stmt, append(args, q.Limit), func(scan func(...any) error) error {
		u, err := s.scanUpdate(scan, new(string))
		out = append(out, u)
		return err
	})
	return out, err
}

// columns are those of an Update, with the digest and both sums, as scanUpdate reads
// them.
const columns = "id, client, COALESCE(key, ''), ops, enable, records, state, batch, error, submitted, began, " +
	"ended, deadline, digest, asked, told"

func (s *Store) scanUpdate(scan func(...any) error, digest *string, more ...any) (u Update, err error) {
	var submitted, began, ended, deadline, asked, told int64
	err = s.badCell(scan(append([]any{&u.ID, &u.Client, &u.Key, &u.Ops, &u.Enable, &u.Records, &u.State, &u.Batch, &u.Error,
		&submitted, &began, &ended, &deadline, digest, &asked, &told}, more...)...))
	u.Submitted, u.Began = fromNanos(submitted), fromNanos(began)
	u.Ended, u.Deadline = fromNanos(ended), fromNanos(deadline)
	if err == nil && (asked != askedSum(&u, *digest) || told != toldSum(&u)) {
		err = s.damagedRow("update %d", u.ID)
	}
	return u, err
}

// badCell is the error of a cell that is of another kind than what was written: the row is
// not looked at then, nor its sum (database/sql, convertAssign).
func (s *Store) badCell(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "sql: Scan error") {
		return &DamagedError{s.file, err.Error()}
	}
	return err
}

// damagedRow is the error of a row that is not as it was written.
func (s *Store) damagedRow(format string, args ...any) error {
	return &DamagedError{s.file, fmt.Sprintf(format, args...) + ": " + errSums.Error()}
}

// nanos is a time as the file has it: nanoseconds since 1970, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// each reads rows one by one.
func (s *Store) each(ctx context.Context, stmt string, args []any,
	row func(scan func(...any) error) error) (err error) {
	rows, err := s.read.QueryContext(ctx, stmt, args...)
	if err != nil {
		return s.failed(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return s.failed(err)
	}
	return nil
}

// absent says that there is no row, or why it could not be read.
func (s *Store) absent(what string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	if explained(err) {
		return err
	}
	return fmt.Errorf("%s: %w", what, s.failed(err))
}
