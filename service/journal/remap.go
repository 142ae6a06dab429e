// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"compress/flate"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The names of a table's records are kept beside their numbers, so that what clients want
// can be found again in another table: after the kernel was changed, numbers and addresses
// are others, and names are mostly not.

// packNames is how names are kept: one a line, packed (RFC 1951).
func packNames(names []string) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := io.WriteString(w, name+"\n"); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

func unpackNames(list []byte) ([]string, error) {
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(list)))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}

// putNames keeps the names of a table, and forgets those of another one.
func putNames(tx *sql.Tx, names []string) (sum int64, err error) {
	list, err := packNames(names)
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec("DELETE FROM names"); err != nil {
		return 0, err
	}
	sum = sumOf(list)
	_, err = tx.Exec("INSERT INTO names VALUES (?, ?)", list, sum)
	return sum, err
}

// names is those of the file's table, packed; none in a file of an earlier version that has
// not been opened with its own table since.
func (s *Store) names(ctx context.Context) (list []byte, err error) {
	var sum int64
	err = s.write.QueryRowContext(ctx, "SELECT list, sum FROM names").Scan(&list, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, s.unsound(ctx, err)
	case sum != sumOf(list):
		return nil, s.damagedRow("names of the records")
	}
	return list, nil
}

// follow brings the file to the table that it is opened with: got is the one that it is
// about.
func (s *Store) follow(ctx context.Context, got, id Identity) error {
	old, err := s.names(ctx)
	switch {
	case err != nil:
		return err
	case got.same(id) && (old != nil || id.Names == nil):
		return nil
	case got.same(id):
		return s.transact([]*job{{do: func(tx *txn) error {
			sum, err := putNames(tx.Tx, id.Names)
			tx.wrote(sum)
			return err
		}}})
	case old == nil || id.Names == nil:
		return &ForeignError{s.file, fmt.Sprintf("it is about the records %s (%d, %s), these are %s (%d, %s), and it does "+
			"not know the names of its own", got.Records, got.Count, got.Hash, id.Records, id.Count, id.Hash)}
	}
	names, err := unpackNames(old)
	if err != nil || len(names) != got.Count {
		return s.damagedRow("the names of %d records, of which there are %d", got.Count, len(names))
	}
	if got.Hash != id.Hash { // else the table has another name now, and that is all
		if err := s.keepCopy(ctx, got); err != nil {
			return err
		}
	}
	return s.remap(ctx, newRenumbering(names, id.Names), got, id)
}

// keepCopy keeps the file as it was with its table: a server may have been given the
// wrong one.
func (s *Store) keepCopy(ctx context.Context, got Identity) error {
	to := filepath.Join(filepath.Dir(s.file), fmt.Sprintf("textpoke-%.8s-%d.db", got.Hash, s.last.commits))
	if _, err := os.Stat(to); err == nil { // of one who was killed behind this
		return nil
	}
	return Backup(ctx, filepath.Dir(s.file), to)
}

// remap rewrites numbers of records, in one transaction with what the file is about. What
// clients wanted and is not there any more becomes an update of theirs that took it away;
// what was accepted and cannot be carried out as it was asked for any more has failed.
func (s *Store) remap(ctx context.Context, r *renumbering, got, id Identity) error {
	s.count = got.Count
	defer func() { s.count = id.Count }()
	wants, err := s.Wants(ctx)
	if err != nil {
		return err
	}
	orders, err := s.Unanswered(ctx)
	if err != nil {
		return err
	}
	return s.transact([]*job{{do: func(tx *txn) error {
		for _, w := range wants {
			if err := s.remapWant(tx, r, w, id); err != nil {
				return err
			}
		}
		for _, o := range orders {
			if err := s.remapOrder(tx, r, o, id); err != nil {
				return err
			}
		}
		if _, err := tx.Exec("UPDATE identity SET records=?, hash=?, count=?", id.Records, id.Hash, id.Count); err != nil {
			return err
		}
		sum, err := putNames(tx.Tx, id.Names)
		tx.wrote(sum)
		return err
	}}})
}

func (s *Store) remapWant(tx *txn, r *renumbering, w Want, id Identity) (err error) {
	now, gone, lost := r.numbers(w.Which)
	blob := encode(now)
	sum := sumOf(w.Client, w.Ops, blob)
	tx.wrote(sum)
	if len(now) == 0 {
		_, err = tx.Exec("DELETE FROM wants WHERE client=? AND ops=?", w.Client, w.Ops)
	} else {
		_, err = tx.Exec("REPLACE INTO wants VALUES (?, ?, ?, ?)", w.Client, w.Ops, blob, sum)
	}
	if err != nil || lost == 0 {
		return err
	}
	return s.tookAway(tx, Update{Client: w.Client, Ops: w.Ops, Records: lost, Error: missing(gone, id)})
}

// tookAway adds the update that says what a client has lost.
func (s *Store) tookAway(tx *txn, u Update) error {
	at := time.Now().UTC()
	u.State, u.Submitted, u.Began, u.Ended = Live, at, at, at
	asked := askedSum(&u, "")
	tx.wrote(asked)
	row, err := tx.Exec(`INSERT INTO updates (client, ops, enable, records, which, digest, state, error, submitted, began,
		ended, deadline, asked, told) VALUES (?, ?, 0, ?, ?, '', ?, ?, ?, ?, ?, 0, ?, ?)`, u.Client, u.Ops, u.Records,
		encode(nil), u.State, u.Error, nanos(at), nanos(at), nanos(at), asked, toldSum(&u))
	if err != nil {
		return err
	}
	u.ID, err = row.LastInsertId()
	s.remapped = append(s.remapped, u)
	return err
}

// missing says which records another table does not have, as far as there is room.
func missing(gone []string, id Identity) string {
	const most = 20
	more := ""
	if len(gone) > most {
		gone, more = gone[:most], fmt.Sprintf(" and %d more", len(gone)-most)
	}
	return fmt.Sprintf("the records %s do not have %s%s", id.Records, strings.Join(gone, ", "), more)
}

func (s *Store) remapOrder(tx *txn, r *renumbering, o Order, id Identity) error {
	now, gone, lost := r.numbers(o.Which)
	u := o.Update
	if lost > 0 {
		u.State, u.Error, u.Ended = Failed, missing(gone, id), time.Now().UTC()
		s.remapped = append(s.remapped, u)
	}
	tx.wrote(toldSum(&u))
	_, err := tx.Exec("UPDATE updates SET which=?, state=?, error=?, ended=?, told=? WHERE id=?", encode(now), u.State, u.Error,
		nanos(u.Ended), toldSum(&u), u.ID)
	return err
}

// Remapped is the updates that ended when the file was opened with another table than
// before: what clients lost, each with what in its Error.
func (s *Store) Remapped() []Update { return s.remapped }

// renumbering leads from one table's records to another's, by name. Several records of one
// name are told apart by their order, as long as there are as many of them.
type renumbering struct {
	names    []string
	old, now map[string][]int // numbers of a name's records, ascending
}

func newRenumbering(old, now []string) *renumbering {
	return &renumbering{old, numbersOf(old), numbersOf(now)}
}

func numbersOf(names []string) map[string][]int {
	out := make(map[string][]int, len(names))
	for i, name := range names {
		out[name] = append(out[name], i)
	}
	return out
}

// numbers is where records are now, ascending, the names of those that are nowhere, and how
// many these are. Who wanted all of a name wants all of it; who wanted some, and there are
// fewer or more now, cannot be told which.
func (r *renumbering) numbers(which []int) (now []int, gone []string, lost int) {
	byName := map[string][]int{}
	for _, rec := range which {
		byName[r.names[rec]] = append(byName[r.names[rec]], rec)
	}
	for name, mine := range byName {
		old, there := r.old[name], r.now[name]
		switch {
		case len(there) > 0 && len(mine) == len(old):
			now = append(now, there...)
		case len(there) == len(old):
			for _, rec := range mine {
				now = append(now, there[slices.Index(old, rec)])
			}
		case len(there) == 0:
			gone, lost = append(gone, name), lost+len(mine)
		default:
			gone = append(gone, fmt.Sprintf("%s (%d of %d, and there are %d)", name, len(mine), len(old), len(there)))
			lost += len(mine)
		}
	}
	slices.Sort(now)
	slices.Sort(gone)
	return now, gone, lost
}
