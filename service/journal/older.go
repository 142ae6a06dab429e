// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Directories of earlier versions hold one SQLite file, its log, and a head. They are read from
// a copy, by the program sqlite3, and stay as they are beside the log that is made of them.
const (
	oldName = "textpoke.db"
	oldHead = "textpoke.head"
)

// oldDirectory is a directory of an earlier version.
type oldDirectory struct {
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

func (o *oldDirectory) close() error { return os.RemoveAll(o.copied) }

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
	if err := rowsOf(ctx, o, "PRAGMA integrity_check(1)", func(row *struct {
		Found string `json:"integrity_check"`
	}) error {
		wrong = row.Found
		return nil
	}); err != nil {
		return err
	}
	if wrong != "ok" {
		return &DamagedError{o.file, wrong}
	}
	if o.version == 1 {
		return nil
	}
	var commits int64
	if err := rowsOf(ctx, o, "SELECT commits FROM identity", func(row *struct{ Commits int64 }) error {
		commits = row.Commits
		return nil
	}); err != nil {
		return err
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

// rowsOf hands the rows of a statement to each: a struct whose fields have the names of its columns.
func rowsOf[Row any](ctx context.Context, o *oldDirectory, stmt string, each func(*Row) error) error {
	var wrong bytes.Buffer
	program := exec.CommandContext(ctx, "sqlite3", "-batch", "-init", os.DevNull, "-json", filepath.Join(o.copied, oldName), stmt)
	program.Stderr = &wrong
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is of an earlier version, and the program sqlite3, which reads it, is not installed", o.file)
	}
	if err != nil {
		return err
	}
	rows := json.NewDecoder(out)
	_, err = rows.Token() // the array's beginning; nothing at all where there are no rows
	for err == nil && rows.More() {
		row := new(Row)
		if err = rows.Decode(row); err == nil {
			err = each(row)
		}
	}
	_, _ = io.Copy(io.Discard, out) // or the program could not end
	said := func(end error) error {
		switch text := strings.TrimSpace(wrong.String()); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case strings.Contains(text, "disk is full") || strings.Contains(text, "disk I/O error"):
			return &TroubleError{o.copied, ErrFull, errors.New(text)}
		default:
			return &DamagedError{o.file, fmt.Sprintf("%v: %s", end, text)}
		}
	}
	if end := program.Wait(); end != nil {
		return said(end)
	}
	var kind *json.UnmarshalTypeError
	if errors.Is(err, io.EOF) {
		return nil
	}
	if errors.As(err, &kind) {
		return &DamagedError{o.file, err.Error()}
	}
	return err
}

// blob is bytes, which statements ask for as hex(column).
type blob []byte

// UnmarshalText reads the digits.
func (b *blob) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func (o *oldDirectory) names() (list []byte, err error) {
	if o.version < 3 {
		return nil, nil
	}
	err = rowsOf(context.Background(), o, "SELECT hex(list) AS list FROM names", func(row *struct{ List blob }) error {
		list = row.List
		return nil
	})
	return list, err
}

// emit sends the file's entries in the order of a segment: its beginning, wishes, updates, runs.
func (o *oldDirectory) emit(each func(*entry) error) error {
	b := &beginning{}
	if err := rowsOf(context.Background(), o, `SELECT records, hash, count, batch,
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='updates'), 0) AS "update",
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='runs'), 0) AS run,
		COALESCE((SELECT MIN(id) FROM updates WHERE state<>'queued'),
			(SELECT seq FROM sqlite_sequence WHERE name='updates') + 1, 1) - 1 AS gone FROM identity`, func(row *beginning) error {
		*b = *row
		b.Version = version
		return nil
	}); err != nil {
		return err
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

func (o *oldDirectory) wants(count int, each func(*entry) error) error {
	column := "sum"
	if o.version == 1 {
		column = "0 AS sum"
	}
	return rowsOf(context.Background(), o, "SELECT client, ops, hex(which) AS which, "+column+" FROM wants ORDER BY client, ops",
		func(row *struct {
			Client, Ops string
			Which       blob
			Sum         int64
		}) error {
			ns, err := decodeRuns(row.Which, count)
			if err != nil || o.version > 1 && row.Sum != sumOf(row.Client, row.Ops, []byte(row.Which)) {
				return &DamagedError{o.file, fmt.Sprintf("what client %.40q wants with ops %.40q is not as it was written", row.Client,
					row.Ops)}
			}
			return each(&entry{Want: &wanted{Client: row.Client, Ops: row.Ops, Which: newWhich(ns)}})
		})
}

// oldUpdate is a row of updates; times are nanoseconds.
type oldUpdate struct {
	ID                                             int64
	Client, Key, Ops, Digest, Error                string
	State                                          State
	Enable                                         int64
	Records                                        int
	Which                                          blob
	Batch                                          int64
	Submitted, Began, Ended, Deadline, Asked, Told int64
}

func (o *oldDirectory) updates(count int, each func(*entry) error) error {
	sums := "0 AS asked, 0 AS told"
	if o.version > 1 {
		sums = "asked, told"
	}
	return rowsOf(context.Background(), o, "SELECT id, client, COALESCE(key, '') AS key, ops, enable, records, hex(which) AS which, "+
		"digest, state, batch, error, submitted, began, ended, deadline, "+sums+" FROM updates ORDER BY id", func(u *oldUpdate) error {
		ns, err := decodeRuns(u.Which, count)
		if o.version > 1 && (u.Asked != sumOf(u.Client, u.Key, u.Ops, u.Enable, u.Records, u.Digest, u.Submitted, u.Deadline) ||
			u.Told != sumOf(string(u.State), u.Batch, u.Error, u.Began, u.Ended)) || err != nil && u.State == Queued {
			return &DamagedError{o.file, fmt.Sprintf("update %d is not as it was written", u.ID)}
		}
		if u.Deadline < u.Submitted { // it was beyond 2262, where 64 bits of nanoseconds end
			u.Deadline = 0
		}
		a := &accepted{Which: newWhich(ns), Digest: u.Digest, Update: Update{ID: u.ID, Client: u.Client, Key: u.Key, Ops: u.Ops,
			Enable: u.Enable != 0, Records: u.Records, State: Queued, Submitted: fromNanos(u.Submitted), Deadline: fromNanos(u.Deadline)}}
		if err := each(&entry{Accept: a}); err != nil || !u.State.Final() {
			return err
		}
		return each(&entry{End: &ending{Past: true, Update: Update{ID: u.ID, State: u.State, Batch: u.Batch, Error: u.Error,
			Began: fromNanos(u.Began), Ended: fromNanos(u.Ended)}}})
	})
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
