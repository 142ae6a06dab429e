// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// closeWith closes a journal that says what is wanted.
func closeWith(t *testing.T, s *Store, want []any) {
	t.Helper()
	got, err := everything(t, s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// everything is what a journal says, of all that there is.
func everything(t *testing.T, s *Store) (all []any, err error) {
	t.Helper()
	ctx := t.Context()
	add := func(v any, e error) {
		all, err = append(all, v), errors.Join(err, e)
	}
	us, e := s.Updates(ctx, Query{Limit: 1000})
	add(us, e)
	for _, u := range us {
		add(s.Update(ctx, u.ID))
		add(s.ByKey(ctx, u.Client, u.Key, "d"))
	}
	add(s.Updates(ctx, Query{Client: "client1", State: Live, Limit: 1000}))
	add(s.Updates(ctx, Query{State: Failed, Limit: 1000}))
	add(s.Unanswered(ctx))
	add(s.Wants(ctx))
	add(s.LastBatch(ctx))
	rs, e := s.Runs(ctx, 0, 0)
	add(rs, e)
	for _, r := range rs {
		if r.Bytes > 0 {
			add(s.File(ctx, r.ID, "jump-label.csv"))
		}
	}
	return all, err
}

// furnish has some of everything written.
func furnish(t *testing.T, s *Store) {
	t.Helper()
	for i := range 12 {
		u := accept(t, s, order(fmt.Sprintf("client%d", i%3), fmt.Sprintf("key%d", i), i, i+1, 50+i))
		if i >= 10 {
			continue
		}
		u.State = []State{Live, Failed, Cancelled, Expired}[i%4]
		u.Batch, u.Began, u.Ended = int64(i), time.Unix(int64(10+i), 0).UTC(), time.Unix(int64(20+i), 5).UTC()
		var ws []Want
		if u.State == Live {
			ws = []Want{{u.Client, u.Ops, []int{i, i + 1, 50 + i}}}
		}
		if u.State == Failed {
			u.Error = "store of 1 byte failed"
		}
		if err := s.Answer([]Update{u}, ws); err != nil {
			t.Fatal(err)
		}
	}
	r := began(t, s, "jump-label", time.Unix(100, 0))
	if err := s.EndRun(r.ID, Done, "", time.Unix(110, 0),
		[]File{{"jump-label.csv", "text/csv; charset=utf-8", []byte("entries\n4\n")}}); err != nil {
		t.Fatal(err)
	}
	began(t, s, "cut-off", time.Unix(120, 0))
}

// TestFlippedBits: whichever bit of a directory's files changes, what is told afterwards
// is what was written, or an error; also when a process was killed and left a log.
func TestFlippedBits(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	furnish(t, s)
	want, err := everything(t, s)
	if err != nil {
		t.Fatal(err)
	}
	killed := image(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tries := 60
	if *long {
		tries = 6000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for i := range tries {
		from, name := dir, FileName
		switch i % 3 {
		case 1:
			from, name = killed, FileName+"-wal"
		case 2:
			from = killed
		}
		harmed := image(t, from)
		file := filepath.Join(harmed, name)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bit := rng.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := served(t, harmed)
		if err != nil {
			refused++
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("bit %d of %s is served: %s", bit, name, cmp.Diff(want, got))
		}
	}
	if refused < tries/10 {
		t.Errorf("%d of %d were refused: what changed?", refused, tries)
	}
}

// served is all that a directory's journal tells, or why it does not.
func served(t *testing.T, dir string) ([]any, error) {
	t.Helper()
	s, err := Open(t.Context(), dir, someone)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	all, err := everything(t, s)
	var damaged *DamagedError
	if errors.Is(err, ErrNotFound) && !errors.As(err, &damaged) {
		t.Errorf("what is there is not found: %v", err)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// TestLostCommits: a log whose first frame is damaged ends there for SQLite, which is
// content with what was before; what was acknowledged since is missed.
func TestLostCommits(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	for range 60 {
		accept(t, s, order("a", "", 1))
	}
	left := image(t, dir)
	wal := filepath.Join(left, FileName+"-wal")
	b, err := os.ReadFile(wal)
	if err != nil {
		t.Fatal(err)
	}
	b[32+24+100] ^= 1 // header, frame header (https://www.sqlite.org/walformat.html)
	if err := os.WriteFile(wal, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := Open(t.Context(), left, someone); !errors.As(err, &damaged) {
		t.Errorf("%v, and 60 updates are gone", err)
	}
}

// TestOrphans: what is left of a database that is gone is not made part of a new one,
// and a database of another history is refused beside a head that knows better.
func TestOrphans(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	for range 3 {
		accept(t, s, order("a", "", 1))
	}
	old := image(t, dir) // of an earlier day
	for range 3 {
		accept(t, s, order("a", "", 1))
	}
	left := image(t, dir)
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(left, name)); err != nil {
			t.Fatal(err)
		}
	}
	var damaged *DamagedError
	refused := func(what string) {
		t.Helper()
		if _, err := Open(t.Context(), left, someone); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	head, err := os.ReadFile(filepath.Join(left, HeadName))
	if err != nil {
		t.Fatal(err)
	}
	remove(FileName)
	refused("a log and a head alone")
	remove(HeadName)
	refused("a log alone")
	remove(FileName + "-wal")
	openIn(t, left) // there is nothing at all
	left = old
	if err := os.WriteFile(filepath.Join(left, HeadName), head, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("an older database")
	remove(HeadName)
	refused("no head")
}

// TestOtherHistory: as many commits of another history are no substitute.
func TestOtherHistory(t *testing.T) {
	var dirs []string
	for _, client := range []string{"a", "b"} {
		dir := t.TempDir()
		s := openIn(t, dir)
		accept(t, s, order(client, "", 1))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	b, err := os.ReadFile(filepath.Join(dirs[0], HeadName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs[1], HeadName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := Open(t.Context(), dirs[1], someone); !errors.As(err, &damaged) {
		t.Errorf("%v", err)
	}
}

// TestUpgrade: a file of version 1, as an earlier program has left it, is read, and goes
// on.
func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/version1.db")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := openIn(t, t.TempDir())
	furnish(t, fresh)
	want, err := everything(t, fresh)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := openIn(t, dir)
		closeWith(t, s, want)
	}
	s := openIn(t, dir)
	if u := accept(t, s, order("a", "", 1)); u.ID != 13 {
		t.Errorf("the next update is %d, want 13", u.ID)
	}
}

// TestBackup: a copy that is made while a server writes is one moment of it, can be
// restored, and goes on by itself.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	furnish(t, s)
	want, err := everything(t, s)
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
	if parts, err := Verify(t.Context(), to); err != nil || len(parts) != 9 || unsound(parts) != "" {
		t.Errorf("%v, %v", parts, err)
	}
	got, err := everything(t, openIn(t, to))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b, []byte(Live))] ^= 0x10 // of some update's row
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), file, filepath.Join(t.TempDir(), "damaged")); err == nil {
		t.Error("a damaged backup was restored")
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

// TestVerify: it names the part that is wrong, and leaves everything as it is.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	furnish(t, s)
	if _, err := Verify(t.Context(), dir); err == nil {
		t.Error("a running server's directory was looked at")
	}
	for _, harm := range []struct{ part, stmt string }{
		{"", ""}, {"updates", "UPDATE updates SET batch=batch+1 WHERE id=3"}, {"updates", "UPDATE updates SET client='x' " +
			"WHERE id=3"},
		{"wants", "UPDATE wants SET ops='p' WHERE client='client1'"}, {"runs", "UPDATE runs SET bytes=7 WHERE id=1"},
		{"files", "UPDATE files SET type='x'"}, {"identity", "UPDATE identity SET batch=0"},
		{"head", "UPDATE identity SET commits=commits-1, sum=textpoke_sum(records, hash, count, batch, commits-1, chain)"},
	} {
		left := image(t, dir)
		before, err := os.ReadDir(left)
		if err != nil {
			t.Fatal(err)
		}
		if harm.stmt != "" {
			db, err := connect(filepath.Join(left, FileName), 1, writePragmas)
			if err == nil {
				_, err = db.Exec(harm.stmt)
				err = errors.Join(err, db.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		parts, err := Verify(t.Context(), left)
		if err != nil || unsound(parts) != harm.part {
			t.Errorf("%s: %v, %v", harm.stmt, parts, err)
		}
		if after, err := os.ReadDir(left); err != nil || harm.stmt == "" && len(after) != len(before) {
			t.Errorf("%v %v, and there was %v", err, after, before)
		}
	}
}
