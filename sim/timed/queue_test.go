// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestEventsInOrder: events come out by time, and at one time in the order in which
// they were asked for, whatever comes and goes in between; a sorted list is the slow
// twin. The numbers of those that wait are all different.
func TestEventsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type asked struct {
			at     Nanos
			what   uint32
			number int32
		}
		q := newQueue()
		var twin []asked
		now := Nanos(0)
		take := func() {
			if at, any := q.earliest(); !any || at != twin[0].at {
				t.Fatalf("the earliest is at %d, want %d", at, twin[0].at)
			}
			e, number := q.pop()
			if got := (asked{e.at, e.what, number}); got != twin[0] {
				t.Fatalf("event %+v, want %+v", got, twin[0])
			}
			now, twin = twin[0].at, twin[1:]
		}
		for i := range rapid.IntRange(1, 300).Draw(t, "operations") {
			if len(twin) > 0 && rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				take()
				continue
			}
			// Few times, so that many are the same, near and far.
			reach := rapid.SampledFrom([]Nanos{0, 1, 62, 1 << 8, 1 << 13, 1 << 30, horizon}).Draw(t, "reach")
			at := now + reach + Nanos(rapid.IntRange(0, 3).Draw(t, "more"))
			if now > horizon {
				at = now // times do not go on for ever
			}
			a := asked{at, uint32(i), q.push(at, uint32(i))}
			if slices.ContainsFunc(twin, func(b asked) bool { return b.number == a.number }) || a.number == 0 {
				t.Fatalf("number %d for the event at %d", a.number, at)
			}
			twin = append(twin, a)
			slices.SortStableFunc(twin, func(a, b asked) int { return cmp.Compare(a.at, b.at) })
		}
		for len(twin) > 0 {
			take()
		}
		if _, any := q.earliest(); any {
			t.Fatal("something is left")
		}
	})
}

// TestEventsNeedNoMemory: an event is a value in a slice that is there already.
func TestEventsNeedNoMemory(t *testing.T) {
	q := newQueue()
	for i := range firstRoom - 1 {
		q.push(Nanos(i), 0)
	}
	n := testing.AllocsPerRun(1000, func() {
		e, _ := q.pop()
		q.push(e.at+firstRoom, 0)
	})
	if n != 0 {
		t.Errorf("%v allocations an event", n)
	}
}
