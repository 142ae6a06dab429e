// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"slices"

	"github.com/textpoke/textpoke/results/perfetto"
)

// line is a track, and what is not written to it yet. A slice is told when it has
// ended, after those that it encloses; in the file it comes before them.
type line struct {
	track perfetto.Track
	last  int64   // time of the last event written
	held  []slice // in order of their beginning, what encloses first
	open  []int64 // ends of the slices being written
}

// slice is a slice or an instant.
type slice struct {
	name        string
	from, until int64
	instant     bool
	link        perfetto.Link
}

// hold keeps a slice: in front of what began no earlier, which it encloses.
func (l *line) hold(s slice) {
	i := len(l.held)
	for i > 0 && l.held[i-1].from >= s.from {
		i--
	}
	l.held = slices.Insert(l.held, i, s)
}

// write writes what began before that time, and what that encloses.
func (l *line) write(w *perfetto.Writer, before int64) {
	n := 0
	for n < len(l.held) && l.held[n].from < before {
		s := &l.held[n]
		from := max(s.from, l.last)
		l.close(w, from)
		if s.instant {
			w.Instant(l.track, s.name, from, s.link)
		} else if w.Begin(l.track, s.name, from, s.link) {
			until := max(s.until, from)
			if k := len(l.open); k > 0 {
				until = min(until, l.open[k-1])
			}
			l.open = append(l.open, until)
			before = max(before, until)
		}
		l.last = from
		n++
	}
	for k := len(l.open); k > 0; k-- {
		l.end(w)
	}
	l.held = slices.Delete(l.held, 0, n)
}

// close ends the open slices that are over at that time.
func (l *line) close(w *perfetto.Writer, at int64) {
	for k := len(l.open); k > 0 && l.open[k-1] <= at; k-- {
		l.end(w)
	}
}

func (l *line) end(w *perfetto.Writer) {
	k := len(l.open) - 1
	w.End(l.track, l.open[k])
	l.last = l.open[k]
	l.open = l.open[:k]
}
