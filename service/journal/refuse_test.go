// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRefused: a log that is not as it was written is refused with its name and what to do, and
// the directory stays as it is: what may be made of it by somebody else is still there.
func TestRefused(t *testing.T) {
	whole := t.TempDir()
	s := openIn(t, whole)
	for range 200 {
		accept(t, s, order("client", "", 1, 2, 3))
	}
	left := image(t, whole) // of a server that was killed
	var foreign *ForeignError
	var damaged *DamagedError
	for _, tt := range []struct {
		name   string
		change func(b []byte) []byte
		want   any
	}{
		{"empty", func([]byte) []byte { return nil }, &damaged},
		{"half a frame", func(b []byte) []byte { return b[:50] }, &damaged},
		{"cut", func(b []byte) []byte { return b[:len(b)/2] }, &damaged},
		{"the last byte is gone", func(b []byte) []byte { return b[:len(b)-1] }, &damaged},
		{"text", func([]byte) []byte { return bytes.Repeat([]byte("hello\n"), 1000) }, &damaged},
		{"newer", func([]byte) []byte {
			payload := []byte(`{"begin":{"version":5,"records":"x","hash":"y","count":1,"link":"` + strings.Repeat("00", 16) +
				`","batch":0,"update":0,"run":0}}`)
			return appendFrame(nil, frame{number: 1, synced: 1, link: link{}.after(1, payload), payload: payload})
		}, &foreign},
		{"a page of zeros", func(b []byte) []byte { clear(b[4096:8192]); return b }, &damaged},
		{"one bit in the middle", func(b []byte) []byte { b[len(b)/2] ^= 4; return b }, &damaged},
		{"one bit of the last frame", func(b []byte) []byte { b[len(b)-3] ^= 4; return b }, &damaged},
		{"noise", func(b []byte) []byte {
			for i := 4096; i < len(b); i += 7 {
				b[i] ^= 0x5a
			}
			return b
		}, &damaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := image(t, left)
			change(t, logOf(t, dir), tt.change)
			before := held(t, dir)
			_, err := Open(t.Context(), dir, someone)
			if !errors.As(err, tt.want) {
				t.Fatalf("%v (%T), want %T", err, err, tt.want)
			}
			want := "frame 1 in " + segmentName(1) + ": " + segmentName(1) + ": it is of version 5, and this program knows 4; " +
				"choose another directory, or move the file away to begin with nothing"
			if tt.name == "newer" && err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if !strings.Contains(err.Error(), "move") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say in one line what to do", err)
			}
			if after := held(t, dir); after != before {
				t.Errorf("the directory has changed from %.200q to %.200q", before, after)
			}
		})
	}
}

// held is all that a directory's files hold.
func held(t *testing.T, dir string) (text string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text += e.Name() + ":" + string(b) + "\n"
	}
	return text
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

// TestLocked: one server at a time, also where a second directory has hard links to the same
// files.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	linked := filepath.Join(t.TempDir(), "linked")
	if out, err := exec.Command("cp", "-al", dir, linked).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, at := range []string{dir, linked} {
		var locked *LockedError
		if _, err := Open(t.Context(), at, someone); !errors.As(err, &locked) || !strings.Contains(err.Error(), at) {
			t.Errorf("a second one in %s: %v", at, err)
		}
	}
	accept(t, s, order("a", "", 1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openIn(t, dir)
}

// TestHalfMade: a server that was killed while it made a file has left nothing in the way.
func TestHalfMade(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{segmentName(1) + unfinished, namesPrefix + "0", runPrefix + "7-0"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	accept(t, openIn(t, dir), order("a", "", 1))
	if text := held(t, dir); strings.Contains(text, "half") {
		t.Errorf("%.500q", text)
	}
}

// TestModes: nobody but the owner reads what clients have asked for.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s := openAs(t, dir, table("t", "a", "b"))
	r := began(t, s, "jump-label", someTime)
	if err := s.EndRun(r.ID, Done, "", someTime, []File{{"a", "text/plain", []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup")
	if err := Backup(t.Context(), dir, backup); err != nil {
		t.Fatal(err)
	}
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(all) < 5 {
		t.Fatalf("%q, %v", all, err)
	}
	for _, file := range append(all, backup) {
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
