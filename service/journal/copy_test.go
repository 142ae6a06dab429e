// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/internal/inputs"
)

// TestBackup: a copy that is made while a server writes is one moment of it, can be
// restored, and goes on by itself.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	furnish(t, s)
	want, err := told(t, s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "backup")
	if err := Backup(t.Context(), dir, file); err != nil { // the server has it open
		t.Fatal(err)
	}
	if err := Backup(t.Context(), dir, file); err == nil {
		t.Error("one backup took another's place")
	}
	accept(t, s, order("later", "", 1))
	to := filepath.Join(t.TempDir(), "restored")
	if err := Restore(t.Context(), file, to); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), file, to); err == nil {
		t.Error("restored over what was there")
	}
	if parts, err := Verify(t.Context(), to); err != nil || len(parts) != 7 || unsound(parts) != "" {
		t.Errorf("%v, %v", parts, err)
	}
	got, err := told(t, openIn(t, to))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b, []byte(Live))] ^= 0x10 // of some update's frame
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), file, filepath.Join(t.TempDir(), "damaged")); err == nil {
		t.Error("a damaged backup was restored")
	}
}

// TestPartOfABackup: a copy that ends too early is refused, wherever it ends; one of an earlier program, which does not say
// where it ends, is taken.
func TestPartOfABackup(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	furnish(t, s)
	file := filepath.Join(t.TempDir(), "backup")
	if err := Backup(t.Context(), dir, file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cuts []int
	old := frames{next: 1, synced: 1}
	for at := 0; at < len(text); {
		cuts = append(cuts, at, at+1)
		f, _ := parseFrame(text[at:])
		e, err := decodeEntry(f.payload)
		if err != nil {
			t.Fatal(err)
		}
		if e.Begin != nil {
			e.Begin.Ends = false
		}
		if at += f.size; !e.Whole {
			if _, err := old.put(&e); err != nil {
				t.Fatal(err)
			}
		}
	}
	restored := func(text []byte) error {
		part := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(part, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return Restore(t.Context(), part, filepath.Join(t.TempDir(), "to"))
	}
	for _, cut := range cuts {
		if restored(text[:cut]) == nil {
			t.Errorf("the first %d bytes of %d were restored", cut, len(text))
		}
	}
	if err := restored(old.text); err != nil {
		t.Error(err)
	}
}

func unsound(parts []Part) string {
	for _, p := range parts {
		if p.Wrong != "" {
			return p.Name
		}
	}
	return ""
}

// TestRestoreRefusesAServersFile: a file out of a directory is no backup: what was acknowledged
// may be in another one. Nor is a database of an earlier version's server, whose log is beside it.
func TestRestoreRefusesAServersFile(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	accept(t, s, order("a", "", 1))
	live := filepath.Join(t.TempDir(), "live.db")
	change(t, "testdata/version3.backup", func(b []byte) []byte {
		other := bytes.Clone(b)
		other[writeAt], other[writeAt+1] = 2, 2
		if err := os.WriteFile(live, other, 0o600); err != nil {
			t.Fatal(err)
		}
		return b
	})
	for _, from := range []string{logOf(t, dir), live} {
		to := filepath.Join(t.TempDir(), "to")
		if err := Restore(t.Context(), from, to); err == nil || !strings.Contains(err.Error(), "want what textpoke backup wrote") {
			t.Errorf("%s: %v", from, err)
		}
		if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was made", from)
		}
	}
}

// TestVerify: it names the part that is wrong, and leaves everything as it is.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	s.segment = 2000
	furnish(t, s)
	if _, err := Verify(t.Context(), dir); err == nil {
		t.Error("a running server's directory was looked at")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	middle := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	for _, harm := range []struct{ part, file string }{
		{"", ""}, {"log", segmentName(1)}, {"log", filepath.Base(logOf(t, dir))}, {"files", runPrefix + "1-0"}, {"head", headName},
	} {
		left := image(t, dir)
		switch {
		case harm.part == "head": // of a log that has lost its end
			change(t, logOf(t, left), func(b []byte) []byte { return b[:len(b)-1] })
		case harm.part != "":
			change(t, filepath.Join(left, harm.file), middle)
		}
		before := held(t, left)
		parts, err := Verify(t.Context(), left)
		if err != nil || unsound(parts) != harm.part {
			t.Errorf("%+v: %v, %v", harm, parts, err)
		}
		if after := held(t, left); after != before {
			t.Errorf("%+v: the directory has changed", harm)
		}
	}
}

// TestRestoreOfAPipe: waiting for a pipe's writer ends with the process.
func TestRestoreOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inputs.Until(ctx)
	defer inputs.Until(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := Restore(ctx, pipe, filepath.Join(t.TempDir(), "new")); err == nil {
		t.Error("a pipe was restored")
	}
}
