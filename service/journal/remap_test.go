// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/textpoke/textpoke/internal/files"
)

func table(name string, names ...string) Identity {
	return Identity{Records: name, Hash: "hash of " + strings.Join(names, ","), Count: len(names), Names: names}
}

// openAs opens a directory's journal with a table.
func openAs(t *testing.T, dir string, id Identity) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestRemap: with another table, what clients want follows the records' names; what has no
// place there is an update of theirs, and what was accepted with it has failed.
func TestRemap(t *testing.T) {
	old := table("old", "read", "write", "dup", "gone", "dup", "few", "few", "open [ext4]", "many")
	next := table("new", "many", "new", "few", "open [ext4]", "dup", "write", "many", "dup", "read", "open")
	dir := t.TempDir()
	s := openAs(t, dir, old)
	wants := []Want{{Client: "all", Ops: "o", Which: []int{0, 1, 2, 3, 4, 5, 6, 7, 8}}, {Client: "half", Ops: "o", Which: []int{4, 6}}, {Client: "lost", Ops: "o", Which: []int{3}},
		{Client: "most", Ops: "p", Which: []int{0, 7}}}
	var us []Update
	for _, w := range wants {
		o := order(w.Client, "", w.Which...)
		o.Ops = w.Ops
		u := accept(t, s, o)
		u.State, u.Batch = Live, 1
		us = append(us, u)
	}
	if err := s.Answer(us, nil); err != nil {
		t.Fatal(err)
	}
	accept(t, s, order("all", "k", 1, 2, 4))
	accept(t, s, order("half", "", 0, 3))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	for range 2 { // the second time nothing is left to do
		s = openAs(t, dir, next)
		got := s.Wants()
		want := []Want{{Client: "all", Ops: "o", Which: []int{0, 2, 3, 4, 5, 6, 7, 8}}, {Client: "half", Ops: "o", Which: []int{7}}, {Client: "most", Ops: "p", Which: []int{3, 8}}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Want{}, "Tag")); diff != "" {
			t.Error(diff)
		}
		orders := s.Unanswered()
		if len(orders) != 1 || orders[0].ID != 5 || !slices.Equal(orders[0].Which, []int{4, 5, 7}) {
			t.Errorf("%+v", orders)
		}
		told, _, err := s.Updates(t.Context(), Query{After: 4})
		if err != nil {
			t.Fatal(err)
		}
		diff := cmp.Diff([]Update{
			{ID: 5, Client: "all", Key: "k", Ops: "o", Enable: true, Records: 3, State: Queued},
			{ID: 6, Client: "half", Ops: "o", Enable: true, Records: 2, State: Failed, Error: "the records new do not have gone"},
			{ID: 7, Client: "all", Ops: "o", Records: 1, State: Live, Error: "the records new do not have gone"},
			{ID: 8, Client: "half", Ops: "o", Records: 1, State: Live,
				Error: "the records new do not have few (1 of 2, and there are 1)"},
			{ID: 9, Client: "lost", Ops: "o", Records: 1, State: Live, Error: "the records new do not have gone"},
		}, told, cmpopts.IgnoreFields(Update{}, "Submitted", "Began", "Ended"))
		if diff != "" {
			t.Error(diff)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		parts, err := Verify(t.Context(), dir)
		if err != nil || slices.ContainsFunc(parts, func(p Part) bool { return p.Wrong != "" }) {
			t.Errorf("%+v, %v", parts, err)
		}
	}

	// What it was before is kept, for those who started with the wrong table.
	copies, err := filepath.Glob(filepath.Join(dir, "textpoke-*.backup"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("%q, %v", copies, err)
	}
	before := t.TempDir()
	if err := Restore(t.Context(), copies[0], before); err != nil {
		t.Fatal(err)
	}
	got := openAs(t, before, old).Wants()
	if diff := cmp.Diff(wants, got, cmpopts.IgnoreFields(Want{}, "Tag")); diff != "" {
		t.Error(diff)
	}
}

// TestRemapTells: the store says what was lost when it was opened, and only then.
func TestRemapTells(t *testing.T) {
	dir := t.TempDir()
	s := openAs(t, dir, table("old", "a", "b"))
	u := accept(t, s, order("c", "", 0, 1))
	u.State = Live
	if err := s.Answer([]Update{u}, nil); err != nil {
		t.Fatal(err)
	}
	for i, names := range [][]string{{"a", "b"}, {"b"}, {"b"}, {"x"}} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openAs(t, dir, table("new", names...))
		if got, want := len(s.Remapped()), []int{0, 1, 0, 1}[i]; got != want {
			t.Errorf("with %q: %+v, want %d updates", names, s.Remapped(), want)
		}
	}
	if ws := s.Wants(); len(ws) != 0 {
		t.Errorf("%+v", ws)
	}
}

// TestUpgradeSecond: a file of version 2 has no names. Opened with its own table it gets
// them; another one is refused until then.
func TestUpgradeSecond(t *testing.T) {
	needsSQLite(t)
	dir := t.TempDir()
	for from, to := range map[string]string{"testdata/version2.db": oldName, "testdata/version2.head": oldHead} {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fresh := openIn(t, t.TempDir())
	furnish(t, fresh)
	want, err := told(t, fresh)
	if err != nil {
		t.Fatal(err)
	}
	named := someone
	for range someone.Count {
		named.Names = append(named.Names, "f")
	}
	other := table("other", "f")
	var foreign *ForeignError
	if _, err := Open(t.Context(), dir, other); !errors.As(err, &foreign) {
		t.Errorf("%v, want a *ForeignError", err)
	}
	for _, id := range []Identity{someone, named} {
		s := openAs(t, dir, id)
		closeWith(t, s, want)
	}
	openAs(t, dir, other)
}

// TestUpgradeThird: a directory of version 3 whose server was killed, and a backup of one, are read
// and left as they are; one that has lost its log is refused.
func TestUpgradeThird(t *testing.T) {
	needsSQLite(t)
	fresh := openIn(t, t.TempDir())
	furnish(t, fresh)
	want, err := told(t, fresh)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"version3.db": oldName, "version3.wal": oldName + "-wal", "version3.head": oldHead} {
		if err := files.Copy(filepath.Join("testdata", from), filepath.Join(dir, to), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lost := image(t, dir)
	if err := os.Remove(filepath.Join(lost, oldName+"-wal")); err != nil {
		t.Fatal(err)
	}
	before := held(t, lost)
	var damaged *DamagedError
	if _, err := Open(t.Context(), lost, someone); !errors.As(err, &damaged) {
		t.Errorf("without its log: %v", err)
	}
	if after := held(t, lost); !strings.HasSuffix(after, before) && len(after) < len(before) {
		t.Error("what was refused has changed")
	}
	closeWith(t, openIn(t, dir), want)
	restored := filepath.Join(t.TempDir(), "restored")
	if err := Restore(t.Context(), "testdata/version3.backup", restored); err != nil {
		t.Fatal(err)
	}
	closeWith(t, openIn(t, restored), want)
}
