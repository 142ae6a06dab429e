// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/golden"
)

// TestPictures: what single events look like, and what is moved so that time does not go back on a track.
func TestPictures(t *testing.T) {
	var all bytes.Buffer
	for _, c := range []struct {
		name string
		tell func(r *Recorder)
	}{
		{"no run", func(r *Recorder) { r.Trap(0, 3, 4, true); r.Machine(nil); r.Trap(1, 5, 6, false) }},
		{"CPUs that were not said to be", func(r *Recorder) { r.Trap(2, 3, 4, true); r.Trap(4, 4, 5, true) }},
		{"before the run", func(r *Recorder) { r.Run("run", -7); r.Trap(0, -3, -1, true); r.Batch(-1, 4) }},
		{"enclosed", func(r *Recorder) {
			r.Trap(0, 5, 6, true)
			r.Trap(0, 5, 5, false)
			r.Interrupt(1, 0, cpus.Stop, 7, 9)
			r.Step(0, "step", 5, 9)
			r.Step(0, "next", 9, 9)
		}},
		{"overlap", func(r *Recorder) { r.Trap(0, 5, 20, true); r.Step(0, "a", 3, 10); r.Step(0, "b", 8, 12) }},
		{"arrows", func(r *Recorder) {
			r.Round(1, 0, cpus.Sync, 0, 4)
			r.Round(2, 0, cpus.Sync, 1, 5)
			r.Round(3, 0, cpus.Stop, 3, 6)
			r.Interrupt(2, 1, cpus.Sync, 5, 9)
			r.Interrupt(3, 1, cpus.Stop, 6, 9)
			r.Interrupt(2, 0, cpus.Sync, 9, 10)
			r.Step(0, "step", 0, 20)
			r.Interrupt(3, 0, cpus.Stop, 7, 8)
			r.Round(4, 0, cpus.Stop, 1, 2)
			r.Interrupt(1, 0, cpus.Sync, 21, 22) // of a round without targets: it has no arrow
		}},
		{"counters", func(r *Recorder) { r.Batch(5, 2); r.Batch(4, 3); r.Trap(0, 9, 9, true); r.Trap(0, 8, 8, true) }},
	} {
		var out bytes.Buffer
		r := New(&out, []cpus.Role{cpus.Busy, cpus.Isolated}, 0)
		c.tell(r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s:\n%s\n", c.name, show(read(t, out.Bytes()), "run"))
	}
	golden.Check(t, filepath.Join("testdata", "pictures.txt"), all.Bytes())
}

// TestGap: a run begins behind the one before it, or later where that is wanted.
func TestGap(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, nil, 0)
	for i, at := range []int64{50, 0, 1059, 5000, 5000} {
		r.Run(fmt.Sprintf("run%d", i), at)
		r.Batch(4, 1)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range 5 {
		_, fill, _ := strings.Cut(show(read(t, out.Bytes()), fmt.Sprintf("run%d", i)), "batch fill: ")
		got = append(got, strings.TrimSpace(fill))
	}
	if diff := cmp.Diff([]string{"54=1", "1058=1", "2062=1", "5004=1", "6008=1"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestHeld: slices wait for the step around them, up to a number; then they are written, and the step begins behind
// them.
func TestHeld(t *testing.T) {
	traps := func(r *Recorder, n int) {
		for i := range n {
			r.Trap(i%2, int64(i), int64(i), true)
		}
	}
	r := New(new(bytes.Buffer), make([]cpus.Role, 2), 0)
	traps(r, holdAtMost)
	if r.held != holdAtMost || len(r.waiting) != 2 || r.cpus[0].last != 0 {
		t.Errorf("%d are held, of %v", r.held, r.waiting)
	}
	r.Trap(0, holdAtMost, holdAtMost, true)
	if r.held != 1 || len(r.waiting) != 1 || r.cpus[1].last != holdAtMost-1 || len(r.trapTimes) != 1 {
		t.Errorf("%d are held, of %v, up to %d, %d times", r.held, r.waiting, r.cpus[1].last, len(r.trapTimes))
	}
	early := New(new(bytes.Buffer), make([]cpus.Role, 1), 0)
	early.Trap(0, 4, 4, true)
	early.Trap(0, 5, 5, true)
	if early.flush(5); len(early.trapTimes) != 1 || early.held != 1 {
		t.Errorf("%v, %d are held of what began at 5", early.trapTimes, early.held)
	}
	for more := range 2 {
		r := New(new(bytes.Buffer), make([]cpus.Role, 2), 0)
		traps(r, holdAbout-1+more)
		r.Step(0, "step", 0, holdAbout)
		if want := (1 - more) * holdAbout; r.held != want {
			t.Errorf("%d are held after a step, want %d", r.held, want)
		}
	}
}

// TestListens: what a machine tells comes onto the timeline.
func TestListens(t *testing.T) {
	if (*Recorder)(nil).Listener() != nil {
		t.Error("nobody listens")
	}
	var told, listened bytes.Buffer
	a, b := New(&told, make([]cpus.Role, 2), 0), New(&listened, make([]cpus.Role, 2), 0)
	l := b.Listener()
	for _, of := range []*cpus.Listener{{Round: a.Round, Interrupt: a.Interrupt, Trap: a.Trap, Step: a.Step,
		Batch: a.Batch}, l} {
		of.Round(1, 0, cpus.Sync, 1, 2)
		of.Interrupt(1, 1, cpus.Sync, 3, 4)
		of.Trap(1, 5, 6, true)
		of.Step(0, "step", 1, 7)
		of.Batch(8, 9)
	}
	if a.Close() != nil || b.Close() != nil || !bytes.Equal(told.Bytes(), listened.Bytes()) || told.Len() == 0 {
		t.Errorf("%d and %d bytes", told.Len(), listened.Len())
	}
}

// TestFull: what finds no room is counted, an arrow that has begun arrives, and no round begins that would not.
func TestFull(t *testing.T) {
	var out bytes.Buffer
	r := New(&out, make([]cpus.Role, 1), 1500)
	r.Run("run", 0)
	r.Round(1, 0, cpus.Sync, 1, 2)
	for i := range int64(100) {
		r.Trap(0, 10+i, 10+i, true)
		r.Step(0, "step", 10+i, 10+i)
		r.flush(10 + i)
	}
	before := r.Dropped()
	r.Round(2, 0, cpus.Sync, 1, 300)
	r.Interrupt(9, 0, cpus.Sync, 301, 302)
	r.Interrupt(1, 0, cpus.Sync, 303, 304)
	if got := r.Dropped() - before; got != 2 || before == 0 {
		t.Errorf("%d, then %d are left out", before, got)
	}
	if err := r.Close(); err != nil || out.Len() > 1500 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
	if f := read(t, out.Bytes()); f.Flows() != 1 {
		t.Errorf("%d arrows", f.Flows())
	}
}
