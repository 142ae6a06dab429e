// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"slices"
	"testing"
)

// TestQueries: whatever is asked for of a list, it has those updates that a walk over all of them
// finds, in order.
func TestQueries(t *testing.T) {
	s := openIn(t, t.TempDir())
	var all []Update
	for i := range 24 {
		o := order([]string{"a", "b", "c"}[i%3], "", 1)
		o.Ops = []string{"o", "p"}[i/3%2]
		u := accept(t, s, o)
		if i%5 != 4 { // the others are on their way
			u.State, u.Ended = []State{Live, Failed, Cancelled, Expired}[i%4], someTime
			if err := s.Answer([]Update{u}, nil); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, u)
	}
	for _, client := range []string{"", "a", "c", "nobody"} {
		for _, ops := range []string{"", "o", "p", "x"} {
			for _, state := range append(States(), "") {
				for _, newest := range []bool{false, true} {
					for _, limit := range []int{0, 1, 3, 100} {
						for _, after := range []int64{0, 1, 12, 23, 24} {
							for _, before := range []int64{0, 1, 2, 13, 24, 25} {
								q := Query{Client: client, Ops: ops, State: state, Newest: newest, Limit: limit, After: after,
									Before: before}
								got, damaged, err := s.Updates(t.Context(), q)
								if want := walk(all, q); err != nil || len(damaged) > 0 || !slices.Equal(got, want) {
									t.Fatalf("%+v: %d updates, %v, want %d", q, len(got), err, len(want))
								}
							}
						}
					}
				}
			}
		}
	}
}

// walk is what a query is for, of all updates in the order of their IDs.
func walk(all []Update, q Query) (out []Update) {
	all = slices.Clone(all)
	if q.Newest {
		slices.Reverse(all)
	}
	for _, u := range all {
		full := q.Limit > 0 && len(out) == q.Limit
		of := (q.Client == "" || u.Client == q.Client) && (q.Ops == "" || u.Ops == q.Ops) &&
			(q.State == "" || u.State == q.State)
		if of && !full && u.ID > q.After && (q.Before == 0 || u.ID < q.Before) {
			out = append(out, u)
		}
	}
	return out
}

// TestStatesAreFinal: an update is queued or runs, or nothing changes any more.
func TestStatesAreFinal(t *testing.T) {
	want := map[State]bool{Queued: false, Held: false, Running: false, Live: true, Failed: true, Cancelled: true, Expired: true}
	for _, state := range States() {
		final, known := want[state]
		if delete(want, state); !known || state.Final() != final {
			t.Errorf("%s: final %v", state, state.Final())
		}
	}
	if len(want) > 0 {
		t.Errorf("%v are left out", want)
	}
}

// TestHarmSaysWhere: what an operator reads of a part of the log that is not as it was written.
func TestHarmSaysWhere(t *testing.T) {
	if got, want := (&harm{"log-1", 7, "torn"}).String(), "byte 7 of log-1: torn"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
