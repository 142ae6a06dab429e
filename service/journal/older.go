// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Directories of earlier versions hold one SQLite file, its log, and a head. They are read from
// a copy, and stay as they are beside the log that is made of them.
const (
	oldName = "textpoke.db"
	oldHead = "textpoke.head"
)

// oldDirectory is a directory of an earlier version.
type oldDirectory struct {
	db      *sql.DB
	copied  string // where the copy is
	file    string // what errors name
	version int
}

// openOlder opens a directory of an earlier version; nil where there is none.
func openOlder(ctx context.Context, dir string) (older, error) {
	file := filepath.Join(dir, oldName)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil, alone(dir)
	}
	o, err := openSQLite(ctx, dir, file)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// alone refuses a directory that has an earlier version's files but no database.
func alone(dir string) error {
	for _, name := range []string{oldName + "-wal", oldHead} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Size() > 0 {
			return &DamagedError{filepath.Join(dir, oldName), "it is gone, and " + name + ", which belongs to it, is there"}
		}
	}
	return nil
}

func openSQLite(ctx context.Context, dir, file string) (o *oldDirectory, err error) {
	o = &oldDirectory{file: file}
	if o.version, _, err = checkHeader(file); err != nil {
		return nil, err
	}
	if o.version < 1 || o.version > 3 {
		return nil, &ForeignError{file, fmt.Sprintf("its schema is of version %d, and this program knows up to 3", o.version)}
	}
	if o.copied, err = os.MkdirTemp("", "textpoke-older-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	for _, name := range []string{oldName, oldName + "-wal"} {
		if err := copyFile(filepath.Join(dir, name), filepath.Join(o.copied, name)); err != nil && !errors.Is(err,
			os.ErrNotExist) {
			return nil, err
		}
	}
	at := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.Join(o.copied, oldName)}).EscapedPath()}
	if o.db, err = sql.Open("sqlite", at.String()); err != nil {
		return nil, err
	}
	o.db.SetMaxOpenConns(2)
	return o, o.sound(ctx, dir)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (o *oldDirectory) close() (err error) {
	if o.db != nil {
		err = o.db.Close()
	}
	return errors.Join(err, os.RemoveAll(o.copied))
}

// The header of a SQLite file (https://www.sqlite.org/fileformat.html#the_database_header).
const (
	magic         = "SQLite format 3\x00"
	headerLen     = 100
	writeAt       = 18         // 2 where it has a write-ahead log
	versionAt     = 60         // user version
	applicationAt = 68         // application ID:
	applicationID = 0x74706f6b // "tpok"
)

// checkHeader looks whose file it is before SQLite touches it, of which version, and whether
// some of it may be in a log beside it.
func checkHeader(file string) (schema int, logged bool, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	head := make([]byte, headerLen)
	switch _, err := io.ReadFull(f, head); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return 0, false, &DamagedError{file, "it is shorter than its header"}
	case err != nil:
		return 0, false, err
	}
	if string(head[:len(magic)]) != magic {
		return 0, false, &ForeignError{file, "not a file of textpoke serve: it does not begin as SQLite's do"}
	}
	if got := binary.BigEndian.Uint32(head[applicationAt:]); got != applicationID {
		return 0, false, &ForeignError{file, fmt.Sprintf("not a file of textpoke serve: its application id is %#x, not %#x", got,
			applicationID)}
	}
	return int(binary.BigEndian.Uint32(head[versionAt:])), head[writeAt] == 2, nil
}

// sound looks whether the file is whole: SQLite takes the first frame of its log that is damaged
// for the log's end (https://www.sqlite.org/walformat.html, 4.4), and the head knows that there
// was more.
func (o *oldDirectory) sound(ctx context.Context, dir string) error {
	var wrong string
	if err := o.db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&wrong); err != nil {
		return o.damage(err)
	}
	if wrong != "ok" {
		return &DamagedError{o.file, wrong}
	}
	if o.version == 1 {
		return nil
	}
	var commits int64
	if err := o.db.QueryRowContext(ctx, "SELECT commits FROM identity").Scan(&commits); err != nil {
		return o.damage(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, oldHead))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for at := 0; at+oldHeadLen+4 <= len(b); at += headPlace {
		one := b[at:]
		known := int64(binary.BigEndian.Uint64(one[8:]))
		if crc32.ChecksumIEEE(one[:oldHeadLen]) == binary.BigEndian.Uint32(one[oldHeadLen:]) && known > commits {
			return &DamagedError{filepath.Join(dir, oldHead), fmt.Sprintf("of %d commits that were on the disk the database and "+
				"its log have %d", known, commits)}
		}
	}
	return nil
}

const oldHeadLen = 8 + 8 + 32 // magic, commits, chain

// damage is what an error of SQLite means.
func (o *oldDirectory) damage(err error) error {
	var lite *sqlite.Error
	if errors.As(err, &lite) && (lite.Code()&0xff == sqlite3.SQLITE_FULL || lite.Code()&0xff == sqlite3.SQLITE_IOERR) {
		return &TroubleError{o.copied, ErrFull, err}
	}
	return &DamagedError{o.file, err.Error()}
}

func (o *oldDirectory) names() (list []byte, err error) {
	if o.version < 3 {
		return nil, nil
	}
	if err = o.db.QueryRow("SELECT list FROM names").Scan(&list); errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return list, err
}

// emit sends the file's entries in the order of a segment: its beginning, wishes, updates, runs.
func (o *oldDirectory) emit(each func(*entry) error) error {
	b := &beginning{Version: version}
	if err := o.db.QueryRow(`SELECT records, hash, count, batch,
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='updates'), 0),
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='runs'), 0),
		COALESCE((SELECT MIN(id) FROM updates WHERE state<>'queued'),
			(SELECT seq FROM sqlite_sequence WHERE name='updates') + 1, 1) - 1 FROM identity`).Scan(&b.Records, &b.Hash, &b.Count,
		&b.Batch, &b.Update, &b.LastRun, &b.Gone); err != nil {
		return o.damage(err)
	}
	if err := each(&entry{Begin: b}); err != nil {
		return err
	}
	if err := o.wants(b.Count, each); err != nil {
		return err
	}
	if err := o.updates(b.Count, each); err != nil {
		return err
	}
	return o.runs(each)
}

// rows hands the rows of a statement to row.
func (o *oldDirectory) rows(stmt string, row func(scan func(...any) error) error, args ...any) (err error) {
	rows, err := o.db.Query(stmt, args...)
	if err != nil {
		return o.damage(err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (o *oldDirectory) wants(count int, each func(*entry) error) error {
	column := "sum"
	if o.version == 1 {
		column = "0"
	}
	return o.rows("SELECT client, ops, which, "+column+" FROM wants ORDER BY client, ops", func(scan func(...any) error) error {
		var w wanted
		var runs []byte
		var sum int64
		if err := scan(&w.Client, &w.Ops, &runs, &sum); err != nil {
			return &DamagedError{o.file, err.Error()}
		}
		ns, err := decodeRuns(runs, count)
		if err != nil || o.version > 1 && sum != sumOf(w.Client, w.Ops, runs) {
			return &DamagedError{o.file, fmt.Sprintf("what client %.40q wants with ops %.40q is not as it was written", w.Client, w.Ops)}
		}
		w.Which = newWhich(ns)
		return each(&entry{Want: &w})
	})
}

func (o *oldDirectory) updates(count int, each func(*entry) error) error {
	sums := ", 0, 0"
	if o.version > 1 {
		sums = ", asked, told"
	}
	return o.rows("SELECT id, client, COALESCE(key, ''), ops, enable, records, which, digest, state, batch, error, submitted, "+
		"began, ended, deadline"+sums+" FROM updates ORDER BY id", func(scan func(...any) error) error {
		a := &accepted{}
		u := &a.Update
		var runs []byte
		var submitted, began, ended, deadline, asked, told int64
		if err := scan(&u.ID, &u.Client, &u.Key, &u.Ops, &u.Enable, &u.Records, &runs, &a.Digest, &u.State, &u.Batch, &u.Error,
			&submitted, &began, &ended, &deadline, &asked, &told); err != nil {
			return &DamagedError{o.file, err.Error()}
		}
		ns, err := decodeRuns(runs, count)
		if o.version > 1 && (asked != sumOf(u.Client, u.Key, u.Ops, u.Enable, u.Records, a.Digest, submitted, deadline) ||
			told != sumOf(string(u.State), u.Batch, u.Error, began, ended)) || err != nil && u.State == Queued {
			return &DamagedError{o.file, fmt.Sprintf("update %d is not as it was written", u.ID)}
		}
		a.Which = newWhich(ns)
		if deadline < submitted { // it was beyond 2262, where 64 bits of nanoseconds end
			deadline = 0
		}
		u.Submitted, u.Deadline = fromNanos(submitted), fromNanos(deadline)
		end := &ending{Past: true, Update: Update{ID: u.ID, State: u.State, Batch: u.Batch, Error: u.Error, Began: fromNanos(began),
			Ended: fromNanos(ended)}}
		u.State, u.Batch, u.Error = Queued, 0, ""
		if err := each(&entry{Accept: a}); err != nil || !end.State.Final() {
			return err
		}
		return each(&entry{End: end})
	})
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
