// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// accept is a client that asks for an update, by a key of its own or without one.
func (w *world) accept() (ask func() error, then func(error)) {
	w.digests++
	o := order([]string{"a", "b"}[w.rng.IntN(2)], []string{"", "", "k", "l"}[w.rng.IntN(4)], w.rng.IntN(100))
	o.Enable, o.Digest, o.Submitted = w.rng.IntN(3) > 0, fmt.Sprint(w.digests), w.clock
	soft := w.rng.IntN(2) == 0
	if o.Key != "" {
		o.Digest = []string{"d", "e"}[w.rng.IntN(2)]
	}
	if o.Enable {
		o.Set, o.Lease = w.rng.IntN(4) == 0, int64(w.rng.IntN(3))
	}
	if o.Set && o.Lease == 0 { // it may end a lease
		o.Over = w.clock
	}
	switch w.rng.IntN(3) {
	case 0:
		o.Deadline = time.Date(2262+w.rng.IntN(7737), 12, 31, 23, 59, 59, 999999999, time.UTC)
	case 1:
		o.Deadline = w.clock.Add(time.Second)
	}
	asked := o
	asked.Which, asked.Unsynced = w.places(o.Which), soft
	var changed func() bool
	asked.Match, changed = w.match(&o)
	var got Update
	entered := false
	ask = func() (err error) {
		got, err = w.store.Accept(asked, func(Update) { entered = true })
		return err
	}
	return ask, func(err error) {
		switch before := w.byKey(&o); {
		case errors.Is(err, ErrKeyReused):
			if before != nil && before.Digest == o.Digest {
				w.wrong = fmt.Errorf("the key of update %d is refused to the same request", before.ID)
			}
		case errors.Is(err, ErrChanged):
			if !changed() && w.store.Trouble() == nil {
				w.wrong = fmt.Errorf("%+v is refused, and what it names is wanted", o)
			}
		case err == nil && !entered:
			if k := w.known[got.ID]; k == nil || k.Client != o.Client || o.Key == "" || k.Key != o.Key || k.Digest != o.Digest {
				w.wrong = fmt.Errorf("%+v is answered with %+v", o, got)
			}
		case err == nil:
			switch {
			case before != nil:
				w.wrong = fmt.Errorf("update %d is done twice, as %d", before.ID, got.ID)
			case changed():
				w.wrong = fmt.Errorf("%+v is accepted, and what it names was not wanted any more", got)
			}
			o.ID, o.State = got.ID, Queued
			w.known[o.ID] = &simUpdate{Order: o, soft: soft}
			w.synced = w.synced || !soft
		case !Passing(err): // nobody knows; of no room, it is known that it was not accepted
			o.State = Queued
			w.maybe = append(w.maybe, o)
		}
	}
}

// match is a tag that an order's client names, mostly that of what it wants; "" for none. changed tells afterwards
// whether that was not so when the order came, or was about to change.
func (w *world) match(o *Order) (tag string, changed func() bool) {
	if w.rng.IntN(3) > 0 {
		return "", func() bool { return false }
	}
	now := w.follow(w.acts)
	tag = tagOf(newWhich(w.places(slices.Collect(maps.Keys(now.wants[o.Client])))).Bitmap)
	lease, before, last := now.leases[o.Client], false, int64(0)
	for id, k := range w.known {
		last, before = max(last, id), before || k.Client == o.Client && k.ended != done
	}
	if !o.Over.IsZero() {
		before = before || lease.Seconds == 0 || lease.Until.After(o.Over)
	}
	if w.rng.IntN(8) == 0 {
		tag, before = "another", true
	}
	return tag, func() bool {
		for id, k := range w.known { // those that shared its transaction
			before = before || id > last && k.Client == o.Client
		}
		return before
	}
}

// byKey is the update that an order's client has used its key for, where that is kept for certain.
func (w *world) byKey(o *Order) (found *simUpdate) {
	for _, k := range w.known {
		if o.Key != "" && k.Client == o.Client && k.Key == o.Key && (found == nil || found.ID < k.ID) {
			found = k
		}
	}
	if found != nil && found.ID <= w.gone && len(found.ends) > 0 {
		return nil
	}
	return found
}

// places is where records are in the table, which knows them by number or, turned, by name.
func (w *world) places(which []int) (out []int) {
	for _, n := range which {
		if w.names != nil {
			n = slices.Index(w.names, fmt.Sprint(n))
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// numbered is names of so many records: their numbers.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
	}
	return names
}

// answer is how an update ends.
func (w *world) answer(id int64) (ask func() error, then func(error)) {
	u := w.known[id].Update
	u.State = []State{Live, Live, Failed, Cancelled, Expired}[w.rng.IntN(5)]
	u.Batch, u.Began, u.Ended = 1, w.clock, w.clock.Add(time.Microsecond)
	w.turns++
	w.known[id].ends, w.known[id].turn = []Update{u}, w.turns // so that it is answered once
	if w.known[id].spent = nil; w.rng.IntN(3) == 0 {
		until := w.clock.Add(time.Duration(1+w.rng.IntN(1e9)) * 5)
		w.known[id].spent = &Spent{w.clock, map[string]time.Time{[]string{"x", "y"}[w.rng.IntN(2)]: until}}
	}
	spent := w.known[id].spent
	return func() error { return w.store.Answer([]Update{u}, spent) }, func(err error) {
		k := w.known[id]
		switch {
		case err == nil:
			w.ended(k)
		case Passing(err):
			k.ends = nil
		}
	}
}

func (w *world) ended(k *simUpdate) {
	k.ended, w.synced = done, true
	w.acts = append(w.acts, act{turn: k.turn, id: k.ID, client: k.Client})
}

// renew is a client that still wants what it has leased.
func (w *world) renew(client string) error {
	w.turns++
	a := act{turn: w.turns, client: client, at: w.clock}
	errs, err := w.serve(func() error { return w.store.Renew(client, w.clock) })
	switch {
	case errs[0] == nil:
		w.acts = append(w.acts, a)
	case !Passing(errs[0]):
		w.unsure = &a
	}
	return err
}
