// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/service/journal"
)

// born is when the rings of these tests are started; before is the ID before its first.
var born = time.UnixMicro(1_000_000)

const before = 999_999

func updateEvent(id int64) *Event { return &Event{Kind: UpdateChanged, Update: &Update{ID: id}} }

// all is what a reader reads until there is no more, and what it missed.
func all(r *Reader) (events []*Event, missed int64) {
	missed = r.Gap()
	for {
		n := len(events)
		if events = r.Read(events); len(events) == n {
			return events, missed
		}
	}
}

// past is what a service has told.
func past(s *Service, after int64) ([]*Event, int64) {
	r := s.Events(after)
	return all(r)
}

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
		missed       int64
	}{
		{0, before + 1, 10, 0}, {before, before + 1, 10, 0}, {before + 4, before + 5, 6, 0},
		{before + 10, 0, 0, 0}, {before + 11, before + 1, 10, -1}, {before + 99, before + 1, 10, -1}, // of the future
		{4, before + 1, 10, -1}, {10, before + 1, 10, -1}, // of an earlier start
	} {
		past, missed := all(r.read(tt.after))
		if len(past) != tt.n || missed != tt.missed || tt.n > 0 && past[0].ID != tt.first {
			t.Errorf("after %d: %d events, %d missed, want %d and %d", tt.after, len(past), missed, tt.n, tt.missed)
		}
	}
	for i := range kept {
		r.add(updateEvent(int64(i)))
	}
	past, missed := all(r.read(before + 9))
	if missed != 1 || len(past) != kept || past[0].ID != before+11 {
		t.Errorf("%d missed, %d events from %d on, want those that are kept", missed, len(past), past[0].ID)
	}
	if past, missed := all(r.read(before + 10)); missed != 0 || len(past) != kept {
		t.Errorf("%d missed, %d events: none is missing", missed, len(past))
	}
}

// TestMore: a reader that has read all is woken by the next event, also by one that was told
// while it looked.
func TestMore(t *testing.T) {
	r := newRing(born)
	reader := r.read(0)
	more := reader.More()
	select {
	case <-more:
		t.Error("there is nothing to read")
	default:
	}
	r.add(updateEvent(1))
	<-more
	<-reader.More()
	if got := reader.Read(nil); len(got) != 1 || got[0].ID != before+1 {
		t.Errorf("%v", got)
	}
}

// TestEventsOfAnEarlierStart: who comes back to a server that was restarted is told
// that something is missing, and hears all that there is.
func TestEventsOfAnEarlierStart(t *testing.T) {
	w := newWorld(t)
	s, kill := w.start(t)
	do(t, s, enable("a", "fn1"))
	known, _ := past(s, 0)
	last := known[len(known)-1].ID
	kill()
	s, _ = w.start(t)
	for i := range 10 { // more events than there were
		do(t, s, enable("a", fmt.Sprintf("fn%d", 2+i)))
	}
	want, _ := past(s, 0)
	got, missed := past(s, last)
	if missed != -1 || len(got) < len(want) || got[0].ID <= last {
		t.Errorf("%d missed, %d events from %d on after %d, want a gap and all %d", missed, len(got), got[0].ID, last,
			len(want))
	}
}

// TestGapIsTold: a reader is woken for a gap, though nothing has happened since the start.
func TestGapIsTold(t *testing.T) {
	s, _ := newWorld(t).start(t)
	r := s.Events(1)
	select {
	case <-r.More():
	default:
		t.Error("there is a gap to tell, and its reader is not woken")
	}
	if missed := r.Gap(); missed != -1 {
		t.Errorf("%d missed, want a gap", missed)
	}
}

// TestSlowReader: a reader that falls behind is told how many events it missed, and reads on;
// others miss nothing.
func TestSlowReader(t *testing.T) {
	r := newRing(born)
	slow, fast := r.read(0), r.read(0)
	const more = 2*kept + 7
	for i := range more {
		r.add(updateEvent(int64(i)))
		if e := fast.Read(nil); fast.Gap() != 0 || len(e) != 1 || e[0].ID != int64(before+i+1) {
			t.Fatalf("events %v, want %d", e, before+i+1)
		}
	}
	if e := slow.Read(nil); len(e) != 0 {
		t.Errorf("%d events of those that were overwritten", len(e))
	}
	if past, missed := all(slow); missed != more-kept || len(past) != kept || past[0].ID != before+1+more-kept {
		t.Errorf("%d missed, %d events from %d on", missed, len(past), past[0].ID)
	}
	r.close()
	<-fast.Ended()
}

// TestReadersTakeNoLock: a reader reads while an event is being told, and one is told while
// readers are anywhere.
func TestReadersTakeNoLock(t *testing.T) {
	r := newRing(born)
	r.add(updateEvent(1))
	r.telling.Lock()
	defer r.telling.Unlock()
	if past, missed := all(r.read(0)); len(past) != 1 || missed != 0 {
		t.Errorf("%v, %d missed", past, missed)
	}
}

// TestEventIsEncodedOnce, whoever asks.
func TestEventIsEncodedOnce(t *testing.T) {
	e, n := updateEvent(1), 0
	for range 3 {
		text, err := e.Text(func(*Event) ([]byte, error) { n++; return []byte("text"), nil })
		if err != nil || string(text) != "text" {
			t.Error(string(text), err)
		}
	}
	if n != 1 {
		t.Errorf("encoded %d times", n)
	}
}

// TestEventsAreSampled: no more of the machine's than promised, none of the
// updates' is left out, and what is left out is counted.
func TestEventsAreSampled(t *testing.T) {
	r := newRing(born)
	const windows, each = 3, 2*sample + 5
	for w := range windows {
		for i := range each {
			r.add(&Event{Kind: Trapped, UntilNS: int64(w)*sampleNS + int64(i)})
		}
		r.add(&Event{Kind: Stepped, UntilNS: int64(w)*sampleNS + each})
		r.add(&Event{Kind: Interrupted, UntilNS: int64(w)*sampleNS + each})
		r.add(updateEvent(1))
	}
	past, _ := all(r.read(0))
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
	r := s.Events(0)
	if past, missed := all(r); len(past) != 0 || missed != 0 {
		t.Errorf("%v, %d missed", past, missed)
	}
	do(t, s, enable("a", "fn1"))
	var states []State
	kinds := map[EventKind]int{}
	for len(states) < 3 {
		<-r.More()
		for _, e := range r.Read(nil) {
			if kinds[e.Kind]++; e.Update != nil {
				states = append(states, e.Update.State)
			}
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

// TestMachineTells: what the machine says becomes an event of its kind, with all that it says.
func TestMachineTells(t *testing.T) {
	s := &Service{events: newRing(born), cfg: Config{At: func(string) {}}}
	l := s.listener()
	l.Round(1, 2, cpus.Sync, 3, 4)
	l.Interrupt(1, 5, cpus.Stop, 6, 7)
	l.Trap(8, 9, 10, true)
	l.Step(11, "store", 12, 13)
	l.Batch(14, 15)
	events, _ := past(s, s.events.first-1)
	cpu := func(n int) *int { return &n }
	want := []*Event{{Kind: RoundSent, CPU: cpu(2), Name: cpus.Sync.String(), Count: 3, FromNS: 4, UntilNS: 4},
		{Kind: Interrupted, CPU: cpu(5), Name: cpus.Stop.String(), FromNS: 6, UntilNS: 7},
		{Kind: Trapped, CPU: cpu(8), Hit: true, FromNS: 9, UntilNS: 10},
		{Kind: Stepped, CPU: cpu(11), Name: "store", FromNS: 12, UntilNS: 13},
		{Kind: Published, Count: 15, FromNS: 14, UntilNS: 14}}
	for i, e := range events {
		e.ID = 0
		if i >= len(want) || !reflect.DeepEqual(e, want[i]) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if len(events) != len(want) {
		t.Errorf("%d events, want %d", len(events), len(want))
	}
}
