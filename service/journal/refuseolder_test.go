// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/internal/files"
)

// second is a new directory of version 2, changed by statements of SQL.
func second(t *testing.T, statements string) string {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"version2.db": oldName, "version2.head": oldHead} {
		if err := files.Copy(filepath.Join("testdata", from), filepath.Join(dir, to), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if statements == "" {
		return dir
	}
	out, err := exec.Command("sqlite3", filepath.Join(dir, oldName),
		"PRAGMA synchronous=off; PRAGMA journal_mode=memory; "+statements).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", statements, err, out)
	}
	return dir
}

// isDamaged fails unless an error is of a damaged file and says just that.
func isDamaged(t *testing.T, what string, err error, file, why string) {
	t.Helper()
	var damaged *DamagedError
	if !errors.As(err, &damaged) || damaged.File != file || damaged.Why != why {
		t.Errorf("%s: %v\nwant %s: damaged: %s", what, err, file, why)
	}
}

// TestOlderCells: each cell that an earlier version has a sum of is held against it, and the row is named.
func TestOlderCells(t *testing.T) {
	needsSQLite(t)
	none := func(*entry) error { return nil }
	updates := func(o *oldDirectory) error { return o.updates(someone.Count, none) }
	wants := func(o *oldDirectory) error { return o.wants(someone.Count, none) }
	runs := func(o *oldDirectory) error { return o.runs(none) }
	for _, c := range []struct {
		read                       func(o *oldDirectory) error
		table, columns, where, why string
	}{
		{updates, "updates", "client key ops enable records digest submitted deadline state batch error began ended", "id=2",
			"update 2 is not as it was written"},
		{wants, "wants", "which sum", "client='client1'",
			`what client "client1" wants with ops "o" is not as it was written`},
		{runs, "runs", "name request state error began ended bytes", "id=1", "run 1 is not as it was written"},
		{runs, "files", "type data", "run=1", `file "jump-label.csv" of run 1 is not as it was written`},
		{runs, "files", "name", "run=1", `file "1" of run 1 is not as it was written`},
	} {
		for column := range strings.FieldsSeq(c.columns) {
			other := "1"
			if slices.Contains([]string{"enable", "batch"}, column) {
				other = "7"
			}
			dir := second(t, fmt.Sprintf("UPDATE %s SET %s=%s WHERE %s", c.table, column, other, c.where))
			o := &oldDirectory{copied: dir, file: "old", version: 2}
			isDamaged(t, c.table+" "+column, c.read(o), "old", c.why)
		}
	}
}

// TestOlderHead: a head that knows of more commits than there are is one of a database that has lost some; which of its
// places knows it makes no difference. One of as many, or with a wrong sum, says nothing.
func TestOlderHead(t *testing.T) {
	needsSQLite(t)
	var there int64
	out, err := exec.Command("sqlite3", filepath.Join(second(t, ""), oldName), "SELECT commits FROM identity").Output()
	if _, scanned := fmt.Sscan(string(out), &there); err != nil || scanned != nil {
		t.Fatal(err, scanned)
	}
	place := func(commits int64, wrong uint32) []byte {
		b := make([]byte, headPlace)
		binary.BigEndian.PutUint64(b[8:], uint64(commits))
		binary.BigEndian.PutUint32(b[8+8+32:], crc32.ChecksumIEEE(b[:8+8+32])+wrong)
		return b
	}
	for name, c := range map[string]struct {
		head    []byte
		refused bool
	}{
		"as many": {place(there, 0), false}, "one more": {place(there+1, 0), true}, "a wrong sum": {place(there+1, 1), false},
		"the second": {append(place(there, 0), place(there+1, 0)...), true}, "half a place": {place(there+1, 0)[:8+8+32+3],
			false},
		"just a place": {place(there+1, 0)[:8+8+32+4], true}, "nothing": {nil, false},
	} {
		dir := second(t, "")
		head := filepath.Join(dir, oldHead)
		if err := os.WriteFile(head, c.head, 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := openOlder(t.Context(), dir)
		if c.refused {
			isDamaged(t, name, err, head, fmt.Sprintf("of %d commits that were on the disk the database and its log have %d",
				there+1, there))
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := o.close(); err != nil {
			t.Error(err)
		}
	}
}

// sqliteSays puts a program in the place of sqlite3 that is this script, until the test ends.
func sqliteSays(t *testing.T, script string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "sqlite3"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/bin:/usr/bin")
}

// TestOlderReader: whatever the program says that reads a database, the error tells the disk's troubles from damage,
// and
// no copy is left. Files of programs that are not ours, and of later versions, are not copied at all.
func TestOlderReader(t *testing.T) {
	dir := second(t, "")
	file := filepath.Join(dir, oldName)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	left := func(what string) {
		t.Helper()
		if all, err := os.ReadDir(temp); err != nil || len(all) != 0 {
			t.Errorf("%s: %v is left, %v", what, all, err)
		}
	}
	for _, c := range []struct{ script, why string }{
		{"echo ' no such table '>&2; exit 3", "exit status 3: no such table"},
		{"echo '[{\"integrity_check\":\"row 7 missing\"}]'", "row 7 missing"},
		{"echo '[{\"integrity_check\":\"\"}]'", ""},
		{"", ""},
	} {
		sqliteSays(t, c.script)
		_, err := openOlder(t.Context(), dir)
		isDamaged(t, c.script, err, file, c.why)
		left(c.script)
	}
	for _, text := range []string{"Error: database or disk is full", "Error: disk I/O error"} {
		sqliteSays(t, "echo '"+text+"' >&2; exit 1")
		_, err := openOlder(t.Context(), dir)
		var trouble *TroubleError
		if !errors.As(err, &trouble) || trouble.Kind != ErrFull || trouble.Err.Error() != text ||
			!strings.HasPrefix(trouble.File, temp) {
			t.Errorf("%s: %v", text, err)
		}
		left(text)
	}
	sqliteSays(t, "echo no rows")
	var damaged *DamagedError
	if _, err := openOlder(t.Context(), dir); !errors.As(err, &damaged) || damaged.File != file || damaged.Why == "" {
		t.Errorf("no rows: %v", err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	why := errors.New("no time")
	end(why)
	if _, err := openOlder(ctx, dir); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
	left("cut short")
	sqliteSays(t, "echo '[{\"integrity_check\":\"ok\",\"Commits\":1000000}]'")
	o, err := openOlder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	left("closed")
}

// TestOlderHeaders: whose file it is, and of which version, by its first hundred bytes alone.
func TestOlderHeaders(t *testing.T) {
	whole, err := os.ReadFile("testdata/version2.db")
	if err != nil {
		t.Fatal(err)
	}
	sqliteSays(t, "echo '[{\"integrity_check\":\"ok\",\"Commits\":1000000}]'")
	file := filepath.Join(t.TempDir(), oldName)
	for name, c := range map[string]struct {
		change  func(b []byte) []byte
		foreign string
		damaged string
	}{
		"short":   {func(b []byte) []byte { return b[:99] }, "", "it is shorter than its header"},
		"empty":   {func(b []byte) []byte { return nil }, "", "it is shorter than its header"},
		"just it": {func(b []byte) []byte { return b[:100] }, "", ""},
		"other magic": {func(b []byte) []byte { b[15] = 1; return b },
			"not a file of textpoke serve: it does not begin as SQLite's do", ""},
		"other program": {func(b []byte) []byte { b[71] = 0; return b },
			"not a file of textpoke serve: its application id is 0x74706f00, not 0x74706f6b", ""},
		"version 0": {func(b []byte) []byte { b[63] = 0; return b },
			"its schema is of version 0, and this program knows up to 3", ""},
		"version 1": {func(b []byte) []byte { b[63] = 1; return b }, "", ""},
		"version 3": {func(b []byte) []byte { b[63] = 3; return b }, "", ""},
		"version 4": {func(b []byte) []byte { b[63] = 4; return b },
			"its schema is of version 4, and this program knows up to 3", ""},
	} {
		if err := os.WriteFile(file, c.change(slices.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := openSQLite(t.Context(), file, "")
		var foreign *ForeignError
		switch {
		case c.damaged != "":
			isDamaged(t, name, err, file, c.damaged)
		case c.foreign != "":
			if !errors.As(err, &foreign) || *foreign != (ForeignError{file, c.foreign}) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if err := o.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOlderAlone: what belongs to a database that is gone is no new directory; an empty file is nothing.
func TestOlderAlone(t *testing.T) {
	for _, name := range []string{oldName + "-wal", oldHead} {
		dir := t.TempDir()
		for _, text := range []string{"", "x"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o, err := openOlder(t.Context(), dir)
			if o != nil {
				t.Errorf("%s: %v", name, o)
			}
			if text == "" && err != nil {
				t.Errorf("an empty %s: %v", name, err)
			} else if text != "" {
				isDamaged(t, name, err, filepath.Join(dir, oldName), "it is gone, and "+name+", which belongs to it, is there")
			}
		}
	}
}

// TestOlderRuns: gaps and lengths up to the last record, and no further; with another sum, or cut off, it is none.
func TestOlderRuns(t *testing.T) {
	for _, c := range []struct {
		pairs []uint64 // gap, length
		want  []int    // nil for none
		cut   int
		wrong bool
	}{
		{pairs: []uint64{}, want: []int{}}, {pairs: []uint64{0, 1}, want: []int{0}}, {pairs: []uint64{9, 1}, want: []int{9}},
		{pairs: []uint64{2, 3, 1, 2}, want: []int{2, 3, 4, 6, 7}}, {pairs: []uint64{0, 10}, want: []int{0, 1, 2, 3, 4, 5, 6,
			7, 8, 9}},
		{pairs: []uint64{0, 11}}, {pairs: []uint64{10, 1}}, {pairs: []uint64{11, 1}}, {pairs: []uint64{5, 5, 0, 1}},
		{pairs: []uint64{0, 0}}, {pairs: []uint64{3}}, {pairs: []uint64{300}}, {pairs: []uint64{0, 1}, wrong: true},
		{pairs: []uint64{1, 300}, cut: 1}, {pairs: []uint64{300}, cut: 1},
	} {
		var b []byte
		for _, n := range c.pairs {
			b = binary.AppendUvarint(b, n)
		}
		b = b[:len(b)-c.cut]
		sum := crc32.ChecksumIEEE(b)
		if c.wrong {
			sum++
		}
		ns, err := decodeRuns(binary.BigEndian.AppendUint32(b, sum), 10)
		if (err == nil) != (c.want != nil) || !slices.Equal(ns, c.want) && err == nil || err != nil && !errors.Is(err,
			errRuns) {
			t.Errorf("%+v: %v, %v", c, ns, err)
		}
	}
	for n := range 4 {
		if _, err := decodeRuns(make([]byte, n), 10); !errors.Is(err, errRuns) {
			t.Errorf("%d bytes without a sum: %v", n, err)
		}
	}
}
