// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// upgrade makes a file of today's version of one of an earlier one. Of version 1: a new one
// beside it, that takes its place when it is whole. Version 2 lacks one table. Files of
// other versions are refused.
func upgrade(ctx context.Context, file string) error {
	found, err := checkHeader(file)
	switch {
	case err != nil || found == version:
		return err
	case found == 2:
		return addNames(ctx, file)
	case found != 1:
		return &ForeignError{file, fmt.Sprintf("its schema is of version %d, and this program knows up to %d", found, version)}
	}
	id, err := settle(ctx, file)
	if err != nil {
		return err
	}
	return create(ctx, file, id, func(tx *sql.Tx) error { return copyFirst(ctx, tx, file) })
}

// addNames adds the table that a file of version 2 lacks. One who was killed here may have
// left it in the log.
func addNames(ctx context.Context, file string) (err error) {
	db, err := connect(file, 1, writePragmas)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	old := &Store{file: file}
	wrong, err := integrity(ctx, db)
	if err != nil {
		return old.unsound(ctx, err)
	}
	if wrong != "" {
		return &DamagedError{file, wrong}
	}
	var found int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return old.unsound(ctx, err)
	}
	if found == 2 {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return old.unsound(ctx, err)
		}
		for _, stmt := range []string{namesTable, fmt.Sprintf("PRAGMA user_version=%d", version)} {
			if _, err := tx.ExecContext(ctx, stmt); err != nil {
				return errors.Join(old.unsound(ctx, err), tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return explain(file, err)
		}
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)") // who looks at the header sees the version
	return err
}

// settle looks whether a file of version 1 is whole, empties its log into it, and says
// what it is about.
func settle(ctx context.Context, file string) (id Identity, err error) {
	db, err := connect(file, 1, writePragmas)
	if err != nil {
		return id, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	old := &Store{file: file}
	wrong, err := integrity(ctx, db)
	if err != nil {
		return id, old.unsound(ctx, err)
	}
	if wrong != "" {
		return id, &DamagedError{file, wrong}
	}
	if err := db.QueryRowContext(ctx, "SELECT records, hash, count FROM identity").Scan(&id.Records, &id.Hash,
		&id.Count); err != nil {
		return id, old.unsound(ctx, err)
	}
	_, err = db.ExecContext(ctx, "PRAGMA journal_mode=delete") // the log goes with the name
	return id, err
}

// copyFirst copies what a file of version 1 has, and sums it up.
func copyFirst(ctx context.Context, tx *sql.Tx, file string) error {
	old, err := connect(file, 1, readPragmas)
	if err != nil {
		return err
	}
	defer old.Close()
	for _, t := range []struct{ from, to string }{
		{"SELECT id, client, key, ops, enable, records, which, digest, state, batch, error, submitted, began, ended, deadline " +
			"FROM updates", "INSERT INTO updates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)"},
		{"SELECT client, ops, which FROM wants", "INSERT INTO wants VALUES (?, ?, ?, 0)"},
		{"SELECT id, name, state, error, began, ended, bytes FROM runs",
			"INSERT INTO runs (id, name, request, state, error, began, ended, bytes, sum) VALUES (?, ?, '', ?, ?, ?, ?, ?, 0)"},
		{"SELECT run, name, type, data FROM files", "INSERT INTO files VALUES (?, ?, ?, ?, 0)"},
		{"SELECT seq, name FROM sqlite_sequence", "UPDATE sqlite_sequence SET seq=? WHERE name=?"},
		{"SELECT batch FROM identity", "UPDATE identity SET batch=?"},
	} {
		if err := copyRows(ctx, old, tx, t.from, t.to); err != nil {
			return fmt.Errorf("%s: %w", t.from, err)
		}
	}
	for _, sums := range []string{
		"UPDATE updates SET asked=" + askedOf + ", told=" + toldOf, "UPDATE wants SET sum=" + wantOf,
		"UPDATE runs SET sum=" + runOf, "UPDATE files SET sum=" + fileOf,
	} {
		if _, err := tx.ExecContext(ctx, sums); err != nil {
			return fmt.Errorf("%s: %w", sums, err)
		}
	}
	return nil
}

// copyRows writes what one statement reads with another.
func copyRows(ctx context.Context, from *sql.DB, tx *sql.Tx, read, write string) (err error) {
	rows, err := from.QueryContext(ctx, read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	put, err := tx.PrepareContext(ctx, write)
	if err != nil {
		return err
	}
	defer put.Close()
	cells, into := make([]any, len(names)), make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if _, err := put.ExecContext(ctx, cells...); err != nil {
			return err
		}
	}
	return rows.Err()
}
