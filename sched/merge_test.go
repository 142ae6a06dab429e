package sched

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRequest draws a request about few records.
func drawRequest(t *rapid.T) Request {
	return Request{
		Client:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client"),
		Enable:  rapid.Bool().Draw(t, "enable"),
		Records: rapid.SliceOfN(rapid.IntRange(0, 7), 0, 6).Draw(t, "records"),
	}
}

// clone is all that wants remember, to be compared.
func (w *wants) clone() wants {
	c := wants{map[string]map[int]bool{}, slices.Clone(w.users), slices.Clone(w.live)}
	for client, mine := range w.clients {
		c.clients[client] = maps.Clone(mine)
	}
	return c
}

func (w *wants) equal(o wants) bool {
	return maps.EqualFunc(w.clients, o.clients, maps.Equal) && slices.Equal(w.users, o.users) && slices.Equal(w.live, o.live)
}

// TestTakeBack leaves everything as it was.
func TestTakeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWants(8)
		for range rapid.IntRange(0, 10).Draw(t, "before") {
			w.done(w.changes([]undo{w.add(drawRequest(t))}))
		}
		before := w.clone()
		var us []undo
		for range rapid.IntRange(0, 10).Draw(t, "then") {
			us = append(us, w.add(drawRequest(t)))
		}
		w.takeBack(us)
		if !w.equal(before) {
			t.Fatalf("%+v, want %+v", *w, before)
		}
	})
}

// TestUsersAreClients: a record has as many users as clients want it, and it is
// live if there is one.
func TestUsersAreClients(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWants(8)
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			w.done(w.changes([]undo{w.add(drawRequest(t))}))
			users := make([]int32, 8)
			for client, mine := range w.clients {
				if len(mine) == 0 {
					t.Fatalf("client %s wants nothing and is remembered", client)
				}
				for rec, wanted := range mine {
					if !wanted {
						t.Fatalf("client %s remembers that it does not want %d", client, rec)
					}
					users[rec]++
				}
			}
			for rec, n := range users {
				if w.users[rec] != n || w.live[rec] != (n > 0) {
					t.Fatalf("record %d: %d users, live %t, want %d", rec, w.users[rec], w.live[rec], n)
				}
			}
		}
	})
}
