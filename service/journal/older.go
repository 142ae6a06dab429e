// SPDX-License-Identifier: Apache-2.0

package journal

import (
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

	"github.com/textpoke/textpoke/internal/files"
	"github.com/textpoke/textpoke/internal/inputs"
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

// openOlder opens a directory of an earlier version; nil where there is none. It refuses one that has an earlier
// version's files but no database.
func openOlder(ctx context.Context, dir string) (older, error) {
	file := filepath.Join(dir, oldName)
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return openSQLite(ctx, file, filepath.Join(dir, oldHead))
	}
	for _, name := range []string{oldName + "-wal", oldHead} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil && info.Size() > 0 {
			return nil, &DamagedError{file, "it is gone, and " + name + ", which belongs to it, is there"}
		}
	}
	return nil, nil
}

// openSQLite opens a database; head is its head's file, which may be missing, and "" for a backup, which has no log.
func openSQLite(ctx context.Context, file, head string) (_ older, err error) {
	o := &oldDirectory{file: file}
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
	if err := files.Copy(file, filepath.Join(o.copied, oldName), 0o600); err != nil {
		return nil, err
	}
	if head != "" {
		err := files.Copy(file+"-wal", filepath.Join(o.copied, oldName+"-wal"), 0o600)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return o, o.sound(ctx, head)
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
	f, err := inputs.Open(file)
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
func (o *oldDirectory) sound(ctx context.Context, head string) error {
	found, err := rowOf[struct {
		Wrong string `json:"integrity_check"`
	}](ctx, o, "PRAGMA integrity_check(1)")
	if err != nil {
		return err
	}
	if found.Wrong != "ok" {
		return &DamagedError{o.file, found.Wrong}
	}
	if o.version == 1 {
		return nil
	}
	there, err := rowOf[struct{ Commits int64 }](ctx, o, "SELECT commits FROM identity")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(head)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for at := 0; at+oldHeadLen+4 <= len(b); at += headPlace {
		one := b[at:]
		known := int64(binary.BigEndian.Uint64(one[8:]))
		if crc32.ChecksumIEEE(one[:oldHeadLen]) == binary.BigEndian.Uint32(one[oldHeadLen:]) && known > there.Commits {
			return &DamagedError{head, fmt.Sprintf("of %d commits that were on the disk the database and "+
				"its log have %d", known, there.Commits)}
		}
	}
	return nil
}

const oldHeadLen = 8 + 8 + 32 // magic, commits, chain

// rowsOf are the rows of a statement: structs whose fields have the names of its columns.
func rowsOf[Row any](ctx context.Context, o *oldDirectory, stmt string) (rows []Row, err error) {
	out, err := exec.CommandContext(ctx, "sqlite3", "-batch", "-init", os.DevNull, "-json", filepath.Join(o.copied, oldName),
		stmt).Output()
	var failed *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is of an earlier version, and the program sqlite3, which reads it, is not installed", o.file)
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &failed):
		text := strings.TrimSpace(string(failed.Stderr))
		if strings.Contains(text, "disk is full") || strings.Contains(text, "disk I/O error") {
			return nil, &TroubleError{o.copied, ErrFull, errors.New(text)}
		}
		return nil, &DamagedError{o.file, fmt.Sprintf("%v: %s", err, text)}
	case err != nil || len(out) == 0: // nothing at all where there are no rows
		return nil, err
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return nil, &DamagedError{o.file, err.Error()}
	}
	return rows, nil
}

// rowOf is the first row of a statement; the zero value where there is none.
func rowOf[Row any](ctx context.Context, o *oldDirectory, stmt string) (row Row, err error) {
	rows, err := rowsOf[Row](ctx, o, stmt)
	if len(rows) > 0 {
		row = rows[0]
	}
	return row, err
}

// since2 is columns that version 1 does not have.
func (o *oldDirectory) since2(columns string) string {
	if o.version == 1 {
		return ""
	}
	return columns
}

// blob is bytes, which statements ask for as hex(column).
type blob []byte

// UnmarshalText reads the digits.
func (b *blob) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

func (o *oldDirectory) names() ([]byte, error) {
	if o.version < 3 {
		return nil, nil
	}
	row, err := rowOf[struct{ List blob }](context.Background(), o, "SELECT hex(list) AS list FROM names")
	return row.List, err
}

// emit sends the file's entries in the order of a segment: its beginning, wishes, updates, runs.
func (o *oldDirectory) emit(each func(*entry) error) error {
	b, err := rowOf[beginning](context.Background(), o, `SELECT records, hash, count, batch,
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='updates'), 0) AS "update",
		COALESCE((SELECT seq FROM sqlite_sequence WHERE name='runs'), 0) AS run,
		COALESCE((SELECT MIN(id) FROM updates WHERE state<>'queued'),
			(SELECT seq FROM sqlite_sequence WHERE name='updates') + 1, 1) - 1 AS gone FROM identity`)
	if err != nil {
		return err
	}
	b.Version = version
	if err := each(&entry{Begin: &b}); err != nil {
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
	rows, err := rowsOf[struct {
		Client, Ops string
		Which       blob
		Sum         int64
	}](context.Background(), o, "SELECT client, ops, hex(which) AS which"+o.since2(", sum")+" FROM wants ORDER BY client, ops")
	for i := 0; err == nil && i < len(rows); i++ {
		row := &rows[i]
		ns, wrong := decodeRuns(row.Which, count)
		if wrong != nil || o.version > 1 && row.Sum != sumOf(row.Client, row.Ops, []byte(row.Which)) {
			return &DamagedError{o.file, fmt.Sprintf("what client %.40q wants with ops %.40q is not as it was written", row.Client,
				row.Ops)}
		}
		err = each(&entry{Want: &wanted{Client: row.Client, Ops: row.Ops, Which: newWhich(ns)}})
	}
	return err
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
	rows, err := rowsOf[oldUpdate](context.Background(), o, "SELECT id, client, key, ops, enable, records, hex(which) AS which, "+
		"digest, state, batch, error, submitted, began, ended, deadline"+o.since2(", asked, told")+" FROM updates ORDER BY id")
	for i := 0; err == nil && i < len(rows); i++ {
		u := &rows[i]
		ns, wrong := decodeRuns(u.Which, count)
		if o.version > 1 && (u.Asked != sumOf(u.Client, u.Key, u.Ops, u.Enable, u.Records, u.Digest, u.Submitted, u.Deadline) ||
			u.Told != sumOf(string(u.State), u.Batch, u.Error, u.Began, u.Ended)) || wrong != nil && u.State == Queued {
			return &DamagedError{o.file, fmt.Sprintf("update %d is not as it was written", u.ID)}
		}
		if u.Deadline < u.Submitted { // it was beyond 2262, where 64 bits of nanoseconds end
			u.Deadline = 0
		}
		err = each(&entry{Accept: &accepted{Which: newWhich(ns), Digest: u.Digest, Update: Update{ID: u.ID, Client: u.Client,
			Key: u.Key, Ops: u.Ops, Enable: u.Enable != 0, Records: u.Records, State: Queued, Submitted: fromNanos(u.Submitted),
			Deadline: fromNanos(u.Deadline)}}})
		if err == nil && u.State.Final() {
			err = each(&entry{End: &ending{Past: true, Update: Update{ID: u.ID, State: u.State, Batch: u.Batch, Error: u.Error,
				Began: fromNanos(u.Began), Ended: fromNanos(u.Ended)}}})
		}
	}
	return err
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}
