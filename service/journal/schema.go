// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// version is that of the schema.
const version = 3

// applicationID marks our files: "tpok" (https://www.sqlite.org/pragma.html#pragma_application_id).
const applicationID = 0x74706f6b

// namesTable holds one row: what the records that numbers stand for are called.
const namesTable = "CREATE TABLE names (list BLOB NOT NULL, sum INTEGER NOT NULL)"

// schema is made at once: of a file that exists all tables do. An update's records
// and a client's are runs of record numbers, see encode. asked, told and sum are sums
// over the rest of a row, see sumOf. An index of those updates alone that are not live
// is small, and the others are most: they are listed in the order of their IDs.
const schema = `
CREATE TABLE identity (records TEXT NOT NULL, hash TEXT NOT NULL, count INTEGER NOT NULL, batch INTEGER NOT NULL,
	commits INTEGER NOT NULL, chain BLOB NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE updates (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	client TEXT NOT NULL, key TEXT, ops TEXT NOT NULL, enable INTEGER NOT NULL,
	records INTEGER NOT NULL, which BLOB NOT NULL, digest TEXT NOT NULL,
	state TEXT NOT NULL, batch INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
	submitted INTEGER NOT NULL, began INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0, deadline INTEGER NOT NULL,
	asked INTEGER NOT NULL, told INTEGER NOT NULL
);
CREATE UNIQUE INDEX update_keys ON updates (client, key) WHERE key IS NOT NULL;
CREATE INDEX update_states ON updates (state, id) WHERE state <> 'live';
CREATE INDEX update_clients ON updates (client, id);
CREATE TABLE wants (client TEXT NOT NULL, ops TEXT NOT NULL, which BLOB NOT NULL, sum INTEGER NOT NULL,
	PRIMARY KEY (client, ops)) WITHOUT ROWID;
CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
	error TEXT NOT NULL DEFAULT '', began INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0,
	bytes INTEGER NOT NULL DEFAULT 0, sum INTEGER NOT NULL
);
CREATE TABLE files (
	run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	name TEXT NOT NULL, type TEXT NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (run, name)
);
` + namesTable + ";"

// pageSize is small, because what one update changes is little and on many pages: each
// transaction writes all pages that it touches.
const pageSize = 1024

// create makes a file under another name first: there is none that is half made.
func create(ctx context.Context, file string, id Identity, more ...func(*sql.Tx) error) error {
	fresh := file + ".new"
	for _, left := range []string{fresh, fresh + "-journal"} { // of one who was killed here
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := fill(ctx, fresh, id, more); err != nil {
		return explain(fresh, err)
	}
	if err := os.Rename(fresh, file); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// fill makes the tables of a new file.
func fill(ctx context.Context, file string, id Identity, more []func(*sql.Tx) error) (err error) {
	db, err := connect(file, 1, "_pragma=synchronous(full)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// In this order: the latter makes a page, and the driver would say it first.
	if _, err := db.ExecContext(ctx, fmt.Sprintf("PRAGMA page_size=%d; PRAGMA auto_vacuum=incremental", pageSize)); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, stmt := range []string{schema, fmt.Sprintf("PRAGMA application_id=%d", applicationID),
		fmt.Sprintf("PRAGMA user_version=%d", version)} {
		if _, err := tx.ExecContext(ctx, stmt); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO identity VALUES (?, ?, ?, 0, 0, zeroblob(32), 0)", id.Records, id.Hash,
		id.Count); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if id.Names != nil {
		if _, err := putNames(tx, id.Names); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	for _, do := range more {
		if err := do(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	first := head{} // of the chain; an older file may have had batches
	if err := tx.QueryRowContext(ctx, "SELECT batch FROM identity").Scan(&first.batch); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := first.write(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// The header of a SQLite file (https://www.sqlite.org/fileformat.html#the_database_header).
const (
	magic         = "SQLite format 3\x00"
	headerLen     = 100
	versionAt     = 60 // user version
	applicationAt = 68
)

// checkHeader looks whose file it is before SQLite touches it, and of which version.
func checkHeader(file string) (schemaVersion int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close() // before SQLite opens it, which has no locks to lose yet
	head := make([]byte, headerLen)
	switch _, err := io.ReadFull(f, head); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, &DamagedError{file, "it is shorter than its header"}
	case err != nil:
		return 0, err
	}
	if string(head[:len(magic)]) != magic {
		return 0, &ForeignError{file, "not a file of textpoke serve: it does not begin as SQLite's do"}
	}
	if got := binary.BigEndian.Uint32(head[applicationAt:]); got != applicationID {
		return 0, &ForeignError{file, fmt.Sprintf("not a file of textpoke serve: its application id is %#x, not %#x", got,
			applicationID)}
	}
	return int(binary.BigEndian.Uint32(head[versionAt:])), nil
}

// check looks whether the file is whole, and brings it to the records that it is opened with.
func (s *Store) check(ctx context.Context, id Identity) error {
	wrong, err := integrity(ctx, s.write)
	if err != nil {
		return s.unsound(ctx, err)
	}
	if wrong != "" {
		return &DamagedError{s.file, wrong}
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	got, h, err := readIdentity(ctx, s.write)
	if err != nil {
		return s.unsound(ctx, err)
	}
	s.last = h
	if err := s.tip.follow(h); err != nil {
		return err
	}
	return s.follow(ctx, got, id)
}

// integrity is what SQLite finds wrong in tables, indexes and pages; "" for nothing.
func integrity(ctx context.Context, db *sql.DB) (wrong string, err error) {
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&wrong); err != nil {
		return "", err
	}
	if wrong == "ok" {
		return "", nil
	}
	return strings.ReplaceAll(wrong, "\n", " "), nil
}

// checkSchema holds the tables against those that this program makes: what they are made
// of is text in the file, too.
func (s *Store) checkSchema(ctx context.Context) error {
	ours, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer ours.Close()
	ours.SetMaxOpenConns(1)
	if _, err := ours.ExecContext(ctx, schema); err != nil {
		return err
	}
	want, err := tables(ctx, ours)
	if err != nil {
		return err
	}
	got, err := tables(ctx, s.write)
	if err != nil {
		return s.unsound(ctx, err)
	}
	if got != want {
		return &DamagedError{s.file, "its tables are not as they were made"}
	}
	return nil
}

// tables is what the tables and indexes of a file are made of.
func tables(ctx context.Context, db *sql.DB) (text string, err error) {
	err = db.QueryRowContext(ctx, `SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || COALESCE(sql, ''), ';'
		ORDER BY name) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'`).Scan(&text)
	return text, err
}
