// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"
	"testing"
	"weak"
)

// TestRowsKeepNoJob: who keeps rows, and thousands of them are kept, keeps neither records nor texts of the run.
func TestRowsKeepNoJob(t *testing.T) {
	j := newJob(t, timedConfig(t, "x86_64", "native", "gen:n=100", "4", plainCosts()))
	l, err := NewTimed(j)
	if err != nil {
		t.Fatal(err)
	}
	row, err := l.Update(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	count, err := j.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	job := weak.Make(j)
	l, j = nil, nil
	runtime.GC()
	if job.Value() != nil {
		t.Error("rows keep their job")
	}
	if row.Seed != 1 || count.Seed != 1 {
		t.Errorf("seeds %d and %d, want 1", row.Seed, count.Seed)
	}
}
