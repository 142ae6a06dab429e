// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"testing"
	"time"
)

// TestCompactIsSmallSteps: of many updates those go that are too many, in transactions
// of few rows, among which others get their turn; and what has not ended stays.
func TestCompactIsSmallSteps(t *testing.T) {
	s := openIn(t, t.TempDir())
	const all, keep, open = 20_000, 1000, 7
	err := s.change(func(tx *txn) error {
		_, err := tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?)
			INSERT INTO updates (client, ops, enable, records, which, digest, state, submitted, ended, deadline,
				asked, told) SELECT 'c' || (i % 97), 'o', 1, 1, x'', 'd', CASE WHEN i % ? = 1 THEN 'queued' ELSE 'live' END, i, i, 0, 0, 0 FROM n`,
			all, all/open+1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	count := func(where string) (n int) {
		t.Helper()
		if err := s.read.QueryRow("SELECT COUNT(*) FROM updates WHERE " + where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count("state='queued'"); n != open {
		t.Fatalf("%d have not ended, want %d", n, open)
	}
	steps, left := 0, all
	removed, err := s.Compact(t.Context(), time.Unix(1, 0), Keep{Updates: keep}, func(time.Duration) {
		steps++
		now := count("1")
		if left-now > mostRows {
			t.Errorf("step %d removed %d rows, want %d at most", steps, left-now, mostRows)
		}
		left = now
		accept(t, s, order("a", "", 1)) // others write meanwhile
	})
	if want := int64(all - open - keep); err != nil || removed != want {
		t.Errorf("%d removed, %v, want %d", removed, err, want)
	}
	if n := count("state='live'"); n != keep || count("state='queued'") != open+steps {
		t.Errorf("%d that have ended are left, want %d", n, keep)
	}
	if n := count("state='live' AND id <= 19000 - 7"); n > open {
		t.Errorf("%d of those that are left are not the youngest", n)
	}
	again, err := s.Compact(t.Context(), time.Unix(1, 0), Keep{Updates: keep}, func(time.Duration) {})
	if err != nil || again != 0 {
		t.Errorf("%d removed again, %v", again, err)
	}
}

// TestCompactGivesBack: a file that is mostly free becomes shorter.
func TestCompactGivesBack(t *testing.T) {
	s := openIn(t, t.TempDir())
	for range 3 {
		r := began(t, s, "large", time.Unix(1, 0))
		if err := s.EndRun(r.ID, Done, "", time.Unix(1, 0), []File{{Name: "a", Data: make([]byte, 4<<20)}}); err != nil {
			t.Fatal(err)
		}
	}
	size := func() int64 {
		t.Helper()
		if _, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			t.Fatal(err)
		}
		return s.Size()
	}
	before := size()
	if _, err := s.Compact(t.Context(), time.Unix(10, 0), Keep{Age: time.Second}, func(time.Duration) {}); err != nil {
		t.Fatal(err)
	}
	if after := size(); after > before/4 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
}
