// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service/journal"
)

// born is when the rings of these tests are started; before is the ID before its first.
var born = time.UnixMicro(1_000_000)

const before = 999_999

func updateEvent(id int64) Event { return Event{Kind: UpdateChanged, Update: &Update{ID: id}} }

// TestEventsResume: who comes back with the last ID it has seen misses nothing and
// sees nothing twice, or is told that something is missing.
func TestEventsResume(t *testing.T) {
	r := newRing(born)
	for i := range 10 {
		r.add(updateEvent(int64(i)))
	}
	for _, tt := range []struct {
		after, first int64
		n            int
		gap          bool
	}{
		{0, before + 1, 10, false}, {before, before + 1, 10, false}, {before + 4, before + 5, 6, false},
		{before + 10, 0, 0, false}, {before + 99, before + 1, 10, true}, // of the future
		{4, before + 1, 10, true}, {10, before + 1, 10, true}, // of an earlier start
	} {
		past, _, cancel, gap := r.read(tt.after)
		cancel()
		if len(past) != tt.n || gap != tt.gap || tt.n > 0 && past[0].ID != tt.first {
			t.Errorf("after %d: %d events, gap %t, want %d and %t", tt.after, len(past), gap, tt.n, tt.gap)
		}
	}
	for i := range kept {
		r.add(updateEvent(int64(i)))
	}
	past, live, cancel, gap := r.read(before + 9)
	if !gap || len(past) != kept || past[0].ID != before+11 {
		t.Errorf("gap %t, %d events from %d on, want those that are kept", gap, len(past), past[0].ID)
	}
	if past, _, cancel, gap := r.read(before + 10); gap || len(past) != kept {
		t.Errorf("gap %t, %d events: none is missing", gap, len(past))
		cancel()
	}
	r.add(updateEvent(1))
	if e := <-live; e.ID != past[len(past)-1].ID+1 {
		t.Errorf("event %d follows %d", e.ID, past[len(past)-1].ID)
	}
	cancel()
	if _, open := <-live; open {
		t.Error("goes on after cancel")
	}
}

// TestEventsOfAnEarlierStart: who comes back to a server that was restarted is told
// that something is missing, and hears all that there is.
func TestEventsOfAnEarlierStart(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1"))
	past, _, cancel, _ := s.Events(0)
	cancel()
	last := past[len(past)-1].ID
	kill()
	s, _ = w.start(t)
	for i := range 10 { // more events than there were
		do(t, s, enable("a", fmt.Sprintf("fn%d", 2+i)))
	}
	all, _, cancel, _ := s.Events(0)
	cancel()
	past, _, cancel, gap := s.Events(last)
	cancel()
	if !gap || len(past) < len(all) || past[0].ID <= last {
		t.Errorf("gap %t, %d events from %d on after %d, want a gap and all %d", gap, len(past), past[0].ID, last, len(all))
	}
}

// TestSlowReader is dropped; others go on.
func TestSlowReader(t *testing.T) {
	r := newRing(born)
	_, slow, _, _ := r.read(0)
	_, fast, _, _ := r.read(0)
	for i := range backlog + 1 {
		r.add(updateEvent(int64(i)))
		if e := <-fast; e.ID != int64(before+i+1) {
			t.Fatalf("event %d, want %d", e.ID, before+i+1)
		}
	}
	n := 0
	for range slow {
		n++
	}
	if n != backlog {
		t.Errorf("the slow one has got %d events before it was dropped, want %d", n, backlog)
	}
	r.close()
	if _, open := <-fast; open {
		t.Error("goes on after close")
	}
}

// TestEventsAreSampled: no more of the machine's than promised, none of the
// updates' is left out, and what is left out is counted.
func TestEventsAreSampled(t *testing.T) {
	r := newRing(born)
	const windows, each = 3, 2*sample + 5
	for w := range windows {
		for i := range each {
			r.add(Event{Kind: Trapped, UntilNS: int64(w)*sampleNS + int64(i)})
		}
		r.add(Event{Kind: Stepped, UntilNS: int64(w)*sampleNS + each})
		r.add(Event{Kind: Interrupted, UntilNS: int64(w)*sampleNS + each})
		r.add(updateEvent(1))
	}
	past, _, cancel, _ := r.read(0)
	cancel()
	kinds, skipped := map[EventKind]int{}, 0
	for _, e := range past {
		skipped += int(e.Skipped)
		kinds[e.Kind]++
	}
	if kinds[Trapped] != windows*sample || kinds[Stepped] != windows || kinds[Interrupted] != windows ||
		kinds[UpdateChanged] != windows || skipped != windows*(each-sample) {
		t.Errorf("%v, %d skipped, want %d traps, %d steps, interrupts and updates, %d skipped", kinds, skipped,
			windows*sample, windows, windows*(each-sample))
	}
}

// TestEventsOfAnUpdate: its states come in order, and the machine's steps between.
func TestEventsOfAnUpdate(t *testing.T) {
	w := newWorld(t)
	s, _ := w.start(t)
	past, live, cancel, gap := s.Events(0)
	defer cancel()
	if len(past) != 0 || gap {
		t.Errorf("%v, gap %t", past, gap)
	}
	do(t, s, enable("a", "fn1"))
	var states []State
	kinds := map[EventKind]int{}
	for len(states) < 3 {
		e := <-live
		if kinds[e.Kind]++; e.Update != nil {
			states = append(states, e.Update.State)
		}
	}
	if states[0] != journal.Queued || states[1] != journal.Running || states[2] != journal.Live {
		t.Errorf("states %v", states)
	}
	// x86_64's breakpoint protocol sends three rounds (text_poke_bp_batch,
	// arch/x86/kernel/alternative.c).
	if kinds[RoundSent] != 3 || kinds[Published] != 2 || kinds[Stepped] == 0 {
		t.Errorf("kinds %v", kinds)
	}
}
