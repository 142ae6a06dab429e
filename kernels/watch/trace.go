// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"io"
	"time"

	"github.com/textpoke/textpoke/results/perfetto"
)

// Timeline writes what is watched for ui.perfetto.dev: for each row, the rounds of each
// interval as a slice, and for each CPU a counter of the interrupts that it took.
type Timeline struct {
	w    *perfetto.Writer
	rows map[string]*lines
}

type lines struct {
	rounds perfetto.Track
	cpus   map[int]perfetto.Track
}

// NewTimeline begins one.
func NewTimeline(w io.Writer) *Timeline {
	return &Timeline{perfetto.NewWriter(w, 0), map[string]*lines{}}
}

// Add adds a row.
func (t *Timeline) Add(r *Row) {
	l := t.rows[r.Name]
	if l == nil {
		top := t.w.Track(perfetto.About{Name: r.Name + " " + r.Description, Rank: len(t.rows)})
		l = &lines{t.w.Track(perfetto.About{Name: "rounds", Parent: top}), map[int]perfetto.Track{}}
		for i, cpu := range r.CPUs {
			l.cpus[cpu] = t.w.Track(perfetto.About{Name: fmt.Sprintf("CPU %d", cpu), Parent: top, Rank: i + 1, Counter: true})
		}
		t.rows[r.Name] = l
	}
	start := (r.At - r.Interval).Nanoseconds()
	if rounds, _ := r.About(); rounds > 0 {
		name := fmt.Sprintf("%d by %s", rounds, r.SentBy())
		if r.Calls != "" {
			name += ": " + r.Calls
		}
		if t.w.Begin(l.rounds, name, start, perfetto.Link{}) {
			t.w.End(l.rounds, r.At.Nanoseconds())
		}
	}
	for i, cpu := range r.CPUs {
		t.w.Count(l.cpus[cpu], r.Delta[i], start)
		t.w.Count(l.cpus[cpu], 0, max(r.At.Nanoseconds()-int64(time.Microsecond), start))
	}
}

// Close ends it.
func (t *Timeline) Close() error { return t.w.Close() }
