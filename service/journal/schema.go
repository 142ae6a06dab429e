// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// version is that of the schema.
const version = 1

// applicationID marks our files: "tpok" (https://www.sqlite.org/pragma.html#pragma_application_id).
const applicationID = 0x74706f6b

// schema is made at once: of a file that exists all tables do. An update's records
// and a client's are runs of record numbers, see encode.
const schema = `
CREATE TABLE identity (records TEXT NOT NULL, hash TEXT NOT NULL, count INTEGER NOT NULL, batch INTEGER NOT NULL);
CREATE TABLE updates (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	client TEXT NOT NULL, key TEXT, ops TEXT NOT NULL, enable INTEGER NOT NULL,
	records INTEGER NOT NULL, which BLOB NOT NULL, digest TEXT NOT NULL,
	state TEXT NOT NULL, batch INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT '',
	submitted INTEGER NOT NULL, began INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0, deadline INTEGER NOT NULL
);
CREATE UNIQUE INDEX update_keys ON updates (client, key) WHERE key IS NOT NULL;
CREATE INDEX update_states ON updates (state, id);
CREATE INDEX update_clients ON updates (client, id);
CREATE TABLE wants (client TEXT NOT NULL, ops TEXT NOT NULL, which BLOB NOT NULL, PRIMARY KEY (client, ops));
CREATE TABLE runs (
	id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, state TEXT NOT NULL, error TEXT NOT NULL DEFAULT '',
	began INTEGER NOT NULL, ended INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE files (
	run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
	name TEXT NOT NULL, type TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (run, name)
);
`

// create makes a file under another name first: there is none that is half made.
func create(ctx context.Context, file string, id Identity) error {
	fresh := file + ".new"
	for _, left := range []string{fresh, fresh + "-journal"} { // of one who was killed here
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := fill(ctx, fresh, id); err != nil {
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
func fill(ctx context.Context, file string, id Identity) (err error) {
	db, err := connect(file, 1, "_pragma=auto_vacuum(incremental)&_pragma=synchronous(full)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
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
	if _, err := tx.ExecContext(ctx, "INSERT INTO identity VALUES (?, ?, ?, 0)", id.Records, id.Hash,
		id.Count); err != nil {
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

// checkHeader looks whose file it is before SQLite touches it.
func checkHeader(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close() // before SQLite opens it, which has no locks to lose yet
	head := make([]byte, headerLen)
	switch _, err := io.ReadFull(f, head); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &DamagedError{file, "it is shorter than its header"}
	case err != nil:
		return err
	}
	if string(head[:len(magic)]) != magic {
		return &ForeignError{file, "not a file of textpoke serve: it does not begin as SQLite's do"}
	}
	if got := binary.BigEndian.Uint32(head[applicationAt:]); got != applicationID {
		return &ForeignError{file, fmt.Sprintf("not a file of textpoke serve: its application id is %#x, not %#x", got,
			applicationID)}
	}
	if got := binary.BigEndian.Uint32(head[versionAt:]); got != version {
		return &ForeignError{file, fmt.Sprintf("its schema is of version %d, and this program knows %d", got, version)}
	}
	return nil
}

// check looks whether the file is whole, and about the same records.
func (s *Store) check(ctx context.Context, id Identity) error {
	var sound string
	if err := s.write.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&sound); err != nil {
		return s.unsound(ctx, err)
	}
	if sound != "ok" {
		return &DamagedError{s.file, strings.ReplaceAll(sound, "\n", " ")}
	}
	var got Identity
	if err := s.write.QueryRowContext(ctx, "SELECT records, hash, count FROM identity").Scan(&got.Records, &got.Hash,
		&got.Count); err != nil {
		return s.unsound(ctx, err)
	}
	if got != id {
		return &ForeignError{s.file, fmt.Sprintf("it is about the records %s (%d, %s), and these are %s (%d, %s)",
			got.Records, got.Count, got.Hash, id.Records, id.Count, id.Hash)}
	}
	return nil
}
