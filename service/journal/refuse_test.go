// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefused: a file that is not ours, or not as we wrote it, is refused with its
// name and what to do, and stays as it is.
func TestRefused(t *testing.T) {
	whole := t.TempDir()
	s := openIn(t, whole)
	for range 200 {
		accept(t, s, order("client", "", 1, 2, 3))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(filepath.Join(whole, FileName))
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(b []byte) []byte) []byte { return change(bytes.Clone(good)) }
	var foreign *ForeignError
	var damaged *DamagedError
	for _, tt := range []struct {
		name string
		data []byte
		want any
	}{
		{"empty", nil, &damaged},
		{"half a header", good[:50], &damaged},
		{"cut", good[:len(good)/2/4096*4096], &damaged},
		{"cut inside a page", good[:len(good)-1000], &damaged},
		{"text", bytes.Repeat([]byte("hello\n"), 1000), &foreign},
		{"another program's", with(func(b []byte) []byte { binary.BigEndian.PutUint32(b[applicationAt:], 7); return b }),
			&foreign},
		{"newer", with(func(b []byte) []byte { binary.BigEndian.PutUint32(b[versionAt:], version+1); return b }), &foreign},
		{"a page of zeros", with(func(b []byte) []byte { clear(b[3*4096 : 4*4096]); return b }), &damaged},
		{"noise", with(func(b []byte) []byte {
			for i := 4096; i < len(b); i += 7 {
				b[i] ^= 0x5a
			}
			return b
		}), &damaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, FileName)
			if err := os.WriteFile(file, tt.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), dir, someone)
			if !errors.As(err, tt.want) {
				t.Fatalf("%v (%T), want %T", err, err, tt.want)
			}
			if !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "move") || strings.Contains(err.Error(),
				"\n") {
				t.Errorf("%q does not say in one line which file, and what to do", err)
			}
			if after, _ := os.ReadFile(file); !bytes.Equal(after, tt.data) {
				t.Error("the file has changed")
			}
		})
	}
}

// TestOtherRecords: numbers of records mean nothing in another table, unless names are known.
func TestOtherRecords(t *testing.T) {
	dir := t.TempDir()
	if err := openIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []Identity{{"other", "abc", 100, nil}, {"table", "abd", 100, nil}, {"table", "abc", 101, nil}} {
		var foreign *ForeignError
		if _, err := Open(t.Context(), dir, id); !errors.As(err, &foreign) {
			t.Errorf("%+v: %v", id, err)
		}
	}
	openIn(t, dir)
}

// TestLocked: one server at a time.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	var locked *LockedError
	if _, err := Open(t.Context(), dir, someone); !errors.As(err, &locked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second one: %v", err)
	}
	accept(t, s, order("a", "", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openIn(t, dir)
}

// TestHalfMade: one who was killed while he made the file has left nothing in the
// way.
func TestHalfMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{FileName + ".new", FileName + ".new-journal"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accept(t, openIn(t, dir), order("a", "", 1))
}

// TestWantsDamagedInside: what SQLite cannot see is seen all the same.
func TestWantsDamagedInside(t *testing.T) {
	s := openIn(t, t.TempDir())
	u := accept(t, s, order("a", "", 1))
	u.State = Live
	if err := s.Answer([]Update{u}, []Want{{"a", "o", []int{1}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec("UPDATE wants SET which = x'0101' || substr(which, 3)"); err != nil {
		t.Fatal(err)
	}
	if ws, err := s.Wants(t.Context()); err != nil || len(ws) != 1 || ws[0].Which[0] != 1 {
		t.Errorf("the same bytes: %v, %v", ws, err)
	}
	if _, err := s.write.Exec("UPDATE wants SET which = x'0102' || substr(which, 3)"); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := s.Wants(t.Context()); !errors.As(err, &damaged) {
		t.Errorf("another byte: %v", err)
	}
}

// TestRowsDamagedInside: whatever cell of a row is another, nobody is told what it says.
func TestRowsDamagedInside(t *testing.T) {
	whole := t.TempDir()
	s := openIn(t, whole)
	furnish(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for table, cells := range map[string]string{
		"updates": "client key ops enable records digest state batch error submitted began ended deadline asked told",
		"wants":   "client ops which sum",
		"runs":    "name request state error began ended bytes sum",
		"files":   "type data sum",
	} {
		for cell := range strings.FieldsSeq(cells) {
			s := openIn(t, image(t, whole))
			var kind string
			if err := s.write.QueryRow("SELECT typeof(" + cell + ") FROM " + table).Scan(&kind); err != nil {
				t.Fatal(err)
			}
			other := map[string]string{"integer": cell + "+1", "text": cell + "||'x'", "blob": "CAST(" + cell + "||x'00' AS BLOB)"}
			if _, err := s.write.Exec("UPDATE " + table + " SET " + cell + "=" + other[kind]); err != nil {
				t.Fatal(err)
			}
			var damaged *DamagedError
			if _, err := everything(t, s); !errors.As(err, &damaged) {
				t.Errorf("%s.%s is served: %v", table, cell, err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
