// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNotes: of a step's answers those are noted that had others, and no lingering; of a buffered store, whether it
// arrives.
func TestNotes(t *testing.T) {
	n := &notes{ch: &script{answers: []int{2, 3, 0, 1, 4}}}
	for i, c := range []struct {
		what Choice
		of   int
		want int
	}{{ChooseSite, 1, 0}, {ChooseSite, 3, 2}, {ChooseLinger, 9, 0}, {ChooseDrain, 4, 1}, {ChooseDrain, 4, 0},
		{ChooseGrain, 2, 1},
		{ChooseMove, 5, 4}} {
		if got := n.Choose(c.what, c.of); got != c.want {
			t.Errorf("%d: %d, want %d", i, got, c.want)
		}
	}
	if diff := cmp.Diff([]int{2, 1, 0, 1, 4}, n.answers); diff != "" {
		t.Error(diff)
	}
}

// TestTrailIsBounded: as many steps are recorded as there is room for, with their answers, and the others are made all
// the
// same.
func TestTrailIsBounded(t *testing.T) {
	trail, made := &Trail{Max: 2}, 0
	for who := range 4 {
		trail.Do('c', who, &script{answers: []int{1}}, func(ch Chooser) (Event, CPU) {
			made++
			return Event(ch.Choose(ChooseSite, 2+who)), CPU{ID: int16(who)}
		})
	}
	want := []TrailStep{{'c', 0, []int{1}, Traced, CPU{ID: 0}}, {'c', 1, []int{1}, Traced, CPU{ID: 1}}}
	if fmt.Sprint(trail.Steps()) != fmt.Sprint(want) || made != 4 {
		t.Errorf("%v of %d steps, want %v", trail.Steps(), made, want)
	}
}

// TestSaw: a listener hears of an interrupt when it is answered, with its round, and of a trap when the CPU is back.
func TestSaw(t *testing.T) {
	f := newFixture(t, "x86_64", 1, busy(2), noHandler{}, Weak)
	var heard []string
	r := f.runners[1]
	w := &watch{Listener: &Listener{
		Interrupt: func(id uint64, cpu int, cause Cause, from, until int64) {
			heard = append(heard, fmt.Sprint("round ", id, " ", cpu, " ", cause, " ", until >= from))
		},
		Trap: func(cpu int, from, until int64, hit bool) {
			heard = append(heard, fmt.Sprint("trap ", cpu, " ", hit, " ",
				until >= from))
		},
	}}
	f.Sender(0).Send(0, Sync, false)
	r.cpu.Taken = Taken{Cause: Sync, Ticket: Ticket(r.id)}
	for _, step := range [][2]Phase{
		{Boundary, Boundary}, {Boundary, Interrupted}, {Interrupted, Syncing}, {Syncing, Answering}, {Answering, Interrupted},
		{Interrupted, Answering}, {Answering, Boundary}, {Boundary, Trapped}, {Trapped, Searching}, {Searching, Returning},
		{Returning, Calling}, {Calling, Boundary}, {Boundary, Trapped}, {Trapped, Missed}, {Missed, Retrying}, {Retrying,
			Again},
		{Again, Boundary},
	} {
		r.cpu.Phase = step[1]
		w.saw(r, step[0])
	}
	round := f.sender(Ticket(r.id)).round
	want := []string{fmt.Sprint("round ", round, " 1 ", Sync, " true"), fmt.Sprint("round ", round, " 1 ", Sync, " true"),
		"trap 1 true true", "trap 1 false true"}
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Error(diff)
	}
}
