// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCompactUnderLoad says how long those who write wait for the writer while half of a million
// rows are removed, and how long without: what one transaction of the compaction removes is
// little (TestCompactIsSmallSteps).
func TestCompactUnderLoad(t *testing.T) {
	if !*long {
		t.Skip("without -long nobody removes half of a million rows")
	}
	const rows = 1_000_000
	s := openIn(t, t.TempDir())
	err := s.change(func(tx *txn) error {
		_, err := tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?)
			INSERT INTO updates (client, key, ops, enable, records, which, digest, state, submitted, ended, deadline,
				asked, told) SELECT 'c' || (i % 97), i, 'o', 1, 4, zeroblob(12), printf('%064d', i), 'live', i, i, 0, 0, 0 FROM n`,
			rows)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, keep := range []Keep{{}, {Updates: rows / 2}} {
		done := make(chan struct{})
		var updates atomic.Int64
		var worst [64]time.Duration
		var clients sync.WaitGroup
		for c := range worst {
			clients.Go(func() {
				tick := time.NewTicker(time.Duration(len(worst)) * time.Second / 3000) // 3,000 a second together
				defer tick.Stop()
				for n := 0; ; n++ {
					select {
					case <-done:
						return
					case <-tick.C:
					}
					start := time.Now()
					u, err := s.Accept(order(fmt.Sprint("c", c), fmt.Sprint(i, "-", n), c, c+1, c+2, c+3), func(Update) {})
					if err == nil {
						u.State, u.Batch, u.Ended = Live, 1, time.Now()
						err = s.Answer([]Update{u}, nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
					updates.Add(1)
					worst[c] = max(worst[c], time.Since(start)/2)
				}
			})
		}
		begun, steps, longest := time.Now(), 0, time.Duration(0)
		removed, err := s.Compact(t.Context(), time.Now(), keep, func(took time.Duration) {
			steps++
			longest = max(longest, took)
			time.Sleep(3 * took) // as the service has it
		})
		if err != nil {
			t.Error(err)
		}
		if left := time.Second - time.Since(begun); left > 0 { // as long without one
			time.Sleep(left)
		}
		close(done)
		clients.Wait()
		slowest := time.Duration(0)
		for _, w := range worst {
			slowest = max(slowest, w)
		}
		took := time.Since(begun)
		t.Logf("%d rows removed with %d transactions in %v: %.0f updates a second meanwhile, the slowest commit %v; "+
			"the compaction's own work %v at most", removed, steps, took, float64(updates.Load())/took.Seconds(), slowest, longest)
		if keep.Updates > 0 && removed < rows/2 {
			t.Errorf("%d rows of %d were removed", removed, rows)
		}
	}
}
