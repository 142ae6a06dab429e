// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/sched"
)

// TestCourse: rounds are sent from where the course says, to CPU 0 and away from
// it, and everybody else takes them.
func TestCourse(t *testing.T) {
	c := config(t, "x86_64", "native", "gen:n=20,order=sorted", "busy=4,isolated=1")
	c.Buffer = sched.Buffer{Slots: 1} // 20 batches, 60 rounds
	l := newLive(t, newJob(t, c))
	for _, tt := range []struct {
		home  int
		moves []Move
		want  [5]uint64 // rounds sent
	}{
		{2, []Move{{31, 0}}, [5]uint64{29, 0, 31, 0, 0}},
		{0, []Move{{1, 3}, {2, 3}, {4, 0}, {60, 1}}, [5]uint64{57, 0, 0, 3, 0}},
		{3, nil, [5]uint64{0, 0, 0, 60, 0}},
	} {
		if err := l.Itinerary(tt.home, tt.moves...); err != nil {
			t.Fatal(err)
		}
		row := update(t, l, tt.home != 0)
		for cpu, want := range tt.want {
			if sent, taken := row.Counts.Rounds[cpu][cpus.Sync], row.Counts.Taken[cpu][cpus.Sync]; sent != want ||
				taken != 60-want {
				t.Errorf("from %d, moves %v: cpu %d sent %d rounds and took %d, want %d and %d", tt.home, tt.moves, cpu, sent,
					taken, want, 60-want)
			}
		}
		if row.Violations != 0 {
			t.Errorf("%v", l.Violations())
		}
	}
	for _, bad := range []int{-1, 4, 5} {
		if err := l.Itinerary(0, Move{1, bad}); err == nil {
			t.Errorf("cpu %d takes a patcher", bad)
		}
	}
}
