// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// closeWith closes a journal that says what is wanted.
func closeWith(t *testing.T, s *Store, want []any) {
	t.Helper()
	got, err := told(t, s)
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

// told is what a journal says, of all that there is.
func told(t *testing.T, s *Store) (all []any, err error) {
	t.Helper()
	ctx := t.Context()
	add := func(v any, e error) {
		all, err = append(all, v), errors.Join(err, e)
	}
	us, damaged, e := s.Updates(ctx, Query{Limit: 1000})
	add(us, e)
	if len(damaged) > 0 {
		err = errors.Join(err, &DamagedError{"", ranges(damaged)})
	}
	list := func(q Query) {
		us, _, e := s.Updates(ctx, q)
		add(us, e)
	}
	for _, u := range us {
		add(s.Update(ctx, u.ID))
		add(s.ByKey(ctx, u.Client, u.Key, "d"))
	}
	list(Query{Client: "client1", State: Live, Limit: 1000})
	list(Query{State: Failed, Limit: 1000})
	add(s.Unanswered(), nil)
	add(s.Wants(), nil)
	add(s.LastBatch(), nil)
	rs := s.Runs()
	add(rs, nil)
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
		if u.State == Failed {
			u.Error = "store of 1 byte failed"
		}
		if err := s.Answer([]Update{u}, nil); err != nil {
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

// TestFlippedBits: whichever bit of a directory's files changes, also of one whose server was
// killed, what is told afterwards is what was written, or an error; and what is not told is
// named.
func TestFlippedBits(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	s.segment = 700 // so that there are several
	furnish(t, s)
	want, err := told(t, s)
	if err != nil {
		t.Fatal(err)
	}
	left := image(t, dir)
	all, err := filepath.Glob(filepath.Join(left, "*"))
	if err != nil || len(all) < 6 {
		t.Fatalf("%q, %v", all, err)
	}
	tries := 120
	if *long {
		tries = 6000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	refused, named := 0, 0
	for range tries {
		harmed := image(t, left)
		name := filepath.Base(all[rng.IntN(len(all))])
		bit := 0
		change(t, filepath.Join(harmed, name), func(b []byte) []byte {
			if len(b) > 0 {
				bit = rng.IntN(8 * len(b))
				b[bit/8] ^= 1 << (bit % 8)
			}
			return b
		})
		s, err := Open(t.Context(), harmed, someone)
		if err != nil {
			refused++
			continue
		}
		got, err := told(t, s)
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged):
			if named++; strings.HasSuffix(name, segmentSuffix) && len(s.Damage()) == 0 {
				t.Errorf("bit %d of %s: the start did not say: %v", bit, name, err)
			}
		case err != nil:
			t.Errorf("bit %d of %s: %v", bit, name, err)
		case !reflect.DeepEqual(got, want):
			t.Errorf("bit %d of %s is served: %s", bit, name, cmp.Diff(want, got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if refused < tries/10 || named < tries/10 {
		t.Errorf("%d of %d were refused, %d named: what changed?", refused, tries, named)
	}
}

// TestDamagedRow: a server whose old segment is damaged starts, names the updates that cannot be
// read, and lists the others.
func TestDamagedRow(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	for i := range 6 {
		u := accept(t, s, order("a", fmt.Sprint(i), i))
		u.State = Live
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
	}
	first := logOf(t, dir)
	s.segment = 0
	u := accept(t, s, order("a", "", 7)) // the next segment
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	change(t, first, func(b []byte) []byte {
		b[bytes.Index(b, []byte(`"key":"2"`))] ^= 1
		return b
	})
	s = openIn(t, dir)
	if got := s.Damage(); len(got) != 2 || !strings.HasPrefix(got[0], "1 updates: 3") {
		t.Errorf("%q", got)
	}
	us, damaged, err := s.Updates(t.Context(), Query{})
	if err != nil || len(us) != 6 || !slices.Equal(damaged, []int64{3}) || us[5] != u {
		t.Errorf("%v, %v, %v", us, damaged, err)
	}
	var harmed *DamagedError
	if _, err := s.Update(t.Context(), 3); !errors.As(err, &harmed) || !strings.Contains(err.Error(), "update 3") {
		t.Errorf("%v", err)
	}
	if w := s.Wants(); len(w) != 1 || len(w[0].Which) != 6 {
		t.Errorf("%v: what is wanted is in the last segment", w)
	}
	change(t, first, func(b []byte) []byte { // while it runs
		b[bytes.Index(b, []byte(`"key":"4"`))] ^= 1
		return b
	})
	us, damaged, err = s.Updates(t.Context(), Query{})
	if err != nil || len(us) != 5 || !slices.Equal(damaged, []int64{3, 5}) {
		t.Errorf("%v, %v, %v", us, damaged, err)
	}
}

// TestLostAndOldPages: of a directory in which a page is as it was earlier, or never reached the disk, all is told as it was
// written, or refused, or named: the chain binds frames, and the head the last one. It tries 60 pages, 1,000 with -long.
func TestLostAndOldPages(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	s.segment = 20_000 // so that there are several
	var earlier []map[string][]byte
	for i := range 240 {
		u := accept(t, s, order(fmt.Sprint("client", i%3), fmt.Sprint("old", i), i%20, 60+i%7))
		u.State, u.Batch, u.Began, u.Ended = []State{Live, Failed}[i%2], int64(i), someTime, someTime
		earlier = append(earlier, filesOf(t, dir))
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
	}
	furnish(t, s)
	want, err := told(t, s)
	if err != nil {
		t.Fatal(err)
	}
	left := image(t, dir)
	now := filesOf(t, left)
	var where []string // a name for each page of a file
	for _, name := range slices.Sorted(maps.Keys(now)) {
		where = append(where, slices.Repeat([]string{name}, (len(now[name])+511)/512)...)
	}
	tries := 60
	if *long {
		tries = 1000
	}
	rng := rand.New(rand.NewPCG(1, 2))
	outcomes := map[string]int{}
	for n := 0; n < tries; {
		name, size, was := where[rng.IntN(len(where))], []int{512, 4096}[rng.IntN(2)], "lost"
		at := rng.IntN(len(now[name])) / size * size
		page := now[name][at:min(at+size, len(now[name]))]
		olds := [][]byte{make([]byte, len(page))}
		if rng.IntN(4) > 0 {
			was, olds = "old", nil
			for _, before := range earlier {
				old := make([]byte, len(page))
				if len(before[name]) > at && copy(old, before[name][at:]) > 0 {
					olds = append(olds, old)
				}
			}
		}
		olds = slices.DeleteFunc(olds, func(old []byte) bool { return bytes.Equal(old, page) })
		if len(olds) == 0 {
			continue
		}
		old := olds[rng.IntN(len(olds))]
		n++
		harmed := image(t, left)
		change(t, filepath.Join(harmed, name), func(b []byte) []byte {
			copy(b[at:], old)
			return b
		})
		outcome := reopened(t, harmed, want)
		if strings.HasPrefix(outcome, "wrong") {
			t.Fatalf("%d bytes at %d of %s, %s: %s", size, at, name, was, outcome)
		}
		outcomes[was+" "+outcome]++
		if err := os.RemoveAll(harmed); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(outcomes)
	if outcomes["old named"] == 0 || outcomes["lost named"] == 0 || outcomes["old refused"]+outcomes["lost refused"] == 0 {
		t.Errorf("%v: want some of each", outcomes)
	}
}

// reopened is what becomes of a directory of which something is damaged.
func reopened(t *testing.T, dir string, want []any) string {
	t.Helper()
	var damaged *DamagedError
	s, err := Open(t.Context(), dir, someone)
	if err != nil {
		if errors.As(err, &damaged) {
			return "refused"
		}
		return fmt.Sprintf("wrong: %v", err)
	}
	defer func() { _ = s.Close() }()
	got, err := told(t, s)
	switch {
	case errors.As(err, &damaged):
		return "named"
	case err != nil:
		return fmt.Sprintf("wrong: %v", err)
	case !reflect.DeepEqual(got, want):
		return "wrong: " + cmp.Diff(want, got)
	}
	return "harmless"
}

// filesOf is a directory's files.
func filesOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, file := range all {
		if files[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// TestOrphans: a head that knows of more than there is refuses the rest, and one that is missing
// refuses nothing: it is not synced, and may be gone after a cut of the power.
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
	var damaged *DamagedError
	refused := func(what, dir string) {
		t.Helper()
		if _, err := Open(t.Context(), dir, someone); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	head, err := os.ReadFile(filepath.Join(left, headName))
	if err != nil {
		t.Fatal(err)
	}
	alone := image(t, left)
	if err := os.Remove(logOf(t, alone)); err != nil {
		t.Fatal(err)
	}
	refused("a head alone", alone)
	change(t, filepath.Join(old, headName), func([]byte) []byte { return head })
	refused("an older log", old)
	if err := os.Remove(filepath.Join(left, headName)); err != nil {
		t.Fatal(err)
	}
	if got := openIn(t, left).Unanswered(); len(got) != 6 {
		t.Errorf("without a head: %v", got)
	}
}

// TestOtherHistory: as many frames of another history are no substitute.
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
	b, err := os.ReadFile(filepath.Join(dirs[0], headName))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dirs[1], headName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := Open(t.Context(), dirs[1], someone); !errors.As(err, &damaged) {
		t.Errorf("%v", err)
	}
}
