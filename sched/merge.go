package sched

import (
	"fmt"
	"slices"
)

// Change is one record to be switched.
type Change struct {
	Record int
	Enable bool
}

// Request is what one client wants: a set of records enabled or disabled for it.
// A record is enabled while any client wants it. Enabling what the client has
// enabled already, and disabling what it has not, changes nothing. Records is not
// to be written once the request is submitted.
type Request struct {
	Client  string
	Enable  bool
	Records []int // numbers in the table
}

// wants is who wants which records, and what is live.
type wants struct {
	clients map[string]map[int]bool // none that wants nothing
	users   []int32                 // clients that want the record
	live    []bool                  // the text calls a tracer
}

func newWants(records int) *wants {
	return &wants{
		clients: map[string]map[int]bool{},
		users:   make([]int32, records),
		live:    make([]bool, records),
	}
}

// check refuses requests that name records which are not there.
func (w *wants) check(r Request) error {
	for _, rec := range r.Records {
		if rec < 0 || rec >= len(w.users) {
			return fmt.Errorf("client %s: record %d: there are %d", r.Client, rec, len(w.users))
		}
	}
	return nil
}

// undo takes a request back: the records that it changed for its client.
type undo struct {
	request Request
	changed []int
}

// add notes what a request wants.
func (w *wants) add(r Request) undo {
	u := undo{request: r}
	for _, rec := range r.Records {
		if w.clients[r.Client][rec] != r.Enable {
			w.set(r.Client, rec, r.Enable)
			u.changed = append(u.changed, rec)
		}
	}
	return u
}

// set notes or forgets that a client wants a record.
func (w *wants) set(client string, rec int, enable bool) {
	mine := w.clients[client]
	switch {
	case !enable:
		w.users[rec]--
		if delete(mine, rec); len(mine) == 0 {
			delete(w.clients, client)
		}
	case mine == nil:
		w.users[rec]++
		w.clients[client] = map[int]bool{rec: true}
	default:
		w.users[rec]++
		mine[rec] = true
	}
}

// takeBack reverts requests, the last one first.
func (w *wants) takeBack(us []undo) {
	for _, u := range slices.Backward(us) {
		for _, rec := range u.changed {
			w.set(u.request.Client, rec, !u.request.Enable)
		}
	}
}

// changes is what the text lacks of what is wanted, by record. Opposite wishes
// about one record have met in users and left nothing to do.
func (w *wants) changes(us []undo) []Change {
	var out []Change
	for _, u := range us {
		for _, rec := range u.changed {
			if want := w.users[rec] > 0; want != w.live[rec] {
				out = append(out, Change{rec, want})
			}
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return a.Record - b.Record })
	return slices.Compact(out)
}

// done notes that changes are live.
func (w *wants) done(cs []Change) {
	for _, c := range cs {
		w.live[c.Record] = c.Enable
	}
}
