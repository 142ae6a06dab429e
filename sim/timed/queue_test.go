package timed

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEventsInOrder: events come out by time, and at one time in the order in which
// they were asked for, whatever comes and goes in between; a sorted list is the slow
// twin.
func TestEventsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		var twin []event
		asked := uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			if len(twin) == 0 || rapid.IntRange(0, 2).Draw(t, "what") > 0 {
				at := Nanos(rapid.IntRange(0, 9).Draw(t, "at")) // few, so that many are the same
				what := uint32(rapid.IntRange(0, whatMask).Draw(t, "who"))
				q.push(at, what)
				asked++
				twin = append(twin, event{at, asked<<bitsWhat | uint64(what)})
				slices.SortStableFunc(twin, func(a, b event) int { return cmp.Compare(a.at, b.at) })
				continue
			}
			if at, any := q.earliest(); !any || at != twin[0].at {
				t.Fatalf("the earliest is at %d, want %d", at, twin[0].at)
			}
			if got := q.pop(); got != twin[0] {
				t.Fatalf("event %+v, want %+v", got, twin[0])
			}
			twin = twin[1:]
		}
		for _, want := range twin {
			if got := q.pop(); got != want {
				t.Fatalf("event %+v, want %+v", got, want)
			}
		}
		if _, any := q.earliest(); any {
			t.Fatal("something is left")
		}
	})
}

// TestEventsNeedNoMemory: an event is a value in a heap that is there already.
func TestEventsNeedNoMemory(t *testing.T) {
	q := newQueue()
	for i := range firstRoom {
		q.push(Nanos(i), 0)
	}
	n := testing.AllocsPerRun(1000, func() {
		e := q.pop()
		q.push(e.at+firstRoom, 0)
	})
	if n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}
