// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPruneRuns: of runs that have ended, those go that are too old, and of the rest
// the oldest until the youngest fit; their files go with them, and what still runs
// stays.
func TestPruneRuns(t *testing.T) {
	hour := func(n int) time.Time { return time.Unix(int64(3600*n), 0) }
	const size = 1000
	for _, c := range []struct {
		keep Keep
		want []int64 // of runs 1 to 6, of which 2 never ends and n ended at hour n
	}{
		{Keep{}, []int64{1, 2, 3, 4, 5, 6}},
		{Keep{Age: 7 * time.Hour}, []int64{2, 3, 4, 5, 6}}, // run 3 is as old as may be
		{Keep{Age: 7*time.Hour - 1}, []int64{2, 4, 5, 6}},
		{Keep{Bytes: 5 * size}, []int64{1, 2, 3, 4, 5, 6}},
		{Keep{Bytes: 3*size + 1}, []int64{2, 4, 5, 6}},
		{Keep{Bytes: size - 1}, []int64{2}},
		{Keep{Age: 5 * time.Hour, Bytes: 4 * size}, []int64{2, 5, 6}},
	} {
		s := openIn(t, t.TempDir())
		for id := int64(1); id <= 6; id++ {
			began(t, s, fmt.Sprint(id), hour(0))
			if id == 2 {
				continue
			}
			if err := s.EndRun(id, Done, "", hour(int(id)), []File{{Name: "a", Data: make([]byte, size-1)},
				{Name: "b", Data: []byte("x")}}); err != nil {
				t.Fatal(err)
			}
		}
		before := s.log.next
		removed, err := s.Compact(t.Context(), hour(10), c.keep, func() {})
		if err != nil || removed != int64(6-len(c.want)) {
			t.Errorf("%+v: %d removed, %v", c.keep, removed, err)
		}
		if wrote := s.log.next - before; wrote != min(uint64(removed), 1) { // nothing where nothing goes
			t.Errorf("%+v: %d removed, %d frames", c.keep, removed, wrote)
		}
		left := s.Runs()
		var got []int64
		for _, r := range left {
			got = append(got, r.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: runs %v are left, want %v", c.keep, got, c.want)
		}
		for id := int64(1); id <= 6; id++ {
			_, err := s.File(t.Context(), id, "a")
			if there := slices.Contains(c.want, id) && id != 2; there != !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v: file of run %d: %v", c.keep, id, err)
			}
		}
	}
}

// TestPruneUpdates: of updates that have ended, those go that are too old, up to the first that
// is not, and those before the youngest that may stay. One that has not ended stays.
func TestPruneUpdates(t *testing.T) {
	hour := func(n int) time.Time { return time.Unix(int64(3600*n), 0).UTC() }
	for _, c := range []struct {
		keep Keep
		want []int64 // of updates 1 to 6, of which 2 never ends and n ended at hour n
	}{
		{Keep{}, []int64{1, 2, 3, 4, 5, 6}},
		{Keep{Age: 7 * time.Hour}, []int64{2, 3, 4, 5, 6}}, // update 3 is as old as may be
		{Keep{Age: 7*time.Hour - 1}, []int64{2, 4, 5, 6}},
		{Keep{Updates: 5}, []int64{1, 2, 3, 4, 5, 6}},
		{Keep{Updates: 4}, []int64{2, 3, 4, 5, 6}},
		{Keep{Updates: 1}, []int64{2, 6}},
		{Keep{Age: 6 * time.Hour, Updates: 4}, []int64{2, 4, 5, 6}},
		{Keep{Age: 8 * time.Hour, Updates: 2}, []int64{2, 5, 6}},
	} {
		s := openIn(t, t.TempDir())
		for id := 1; id <= 6; id++ {
			u := accept(t, s, order("a", "", 1))
			if u.State, u.Ended = Live, hour(id); id == 2 {
				continue
			}
			if err := s.Answer([]Update{u}, nil); err != nil {
				t.Fatal(err)
			}
		}
		removed, err := s.Compact(t.Context(), hour(10), c.keep, func() {})
		if err != nil || removed != int64(6-len(c.want)) {
			t.Errorf("%+v: %d removed, %v", c.keep, removed, err)
		}
		for id := int64(1); id <= 6; id++ {
			if _, err := s.Update(t.Context(), id); errors.Is(err, ErrNotFound) == slices.Contains(c.want, id) {
				t.Errorf("%+v: update %d: %v", c.keep, id, err)
			}
		}
	}
}

// TestDamagedIsForgotten: an update whose end is damaged is forgotten in its turn, and does not
// keep its segment, and all behind it, for ever.
func TestDamagedIsForgotten(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	s.segment = 0 // so that another begins soon
	end := func(u Update) {
		u.State, u.Ended = Failed, someTime
		if err := s.Answer([]Update{u}, nil); err != nil {
			t.Fatal(err)
		}
	}
	n := int64(0)
	for ; len(s.log.segments) < 3; n++ {
		end(accept(t, s, order("a", "", 1)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, segmentName(1))
	change(t, file, func(b []byte) []byte { return bytes.Replace(b, []byte(`{"end"`), []byte(`{"and"`), 1) })
	s = openIn(t, dir)
	if said := fmt.Sprint(s.Damage()); !strings.Contains(said, "1 updates: 1 ") {
		t.Fatalf("%s: want update 1", said)
	}
	if forgot, err := s.Compact(t.Context(), someTime, Keep{Updates: 1}, nil); err != nil || forgot != n-1 {
		t.Errorf("%d forgotten, %v, want %d", forgot, err, n-1)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", file, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s = openIn(t, dir); len(s.Damage()) > 0 {
		t.Errorf("%q", s.Damage())
	}
}
