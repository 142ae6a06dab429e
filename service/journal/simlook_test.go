// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// look holds what the journal says against what clients know. What was unknown is known then.
func (w *world) look(damaged map[int64]bool) error {
	open := map[int64]Order{}
	for _, o := range w.store.Unanswered() {
		open[o.ID] = o
	}
	us, harmed, err := w.store.Updates(context.Background(), Query{Limit: 1 << 20})
	if err != nil {
		return err
	}
	if said := w.store.Damage(); damaged == nil && len(harmed)+len(said) > 0 {
		return fmt.Errorf("updates %v cannot be read: %v", harmed, said)
	}
	seen := map[int64]bool{}
	for _, id := range harmed {
		seen[id] = true
	}
	for _, u := range us {
		seen[u.ID] = true
		if err := w.lookAt(u, open[u.ID]); err != nil {
			return err
		}
	}
	for id, k := range w.known {
		if !seen[id] && k.soft && (w.cut || damaged != nil) { // nothing says that the last frames were there
			delete(w.known, id)
			continue
		}
		if !seen[id] && (id > w.gone || k.ended != done && len(k.ends) == 0) {
			return fmt.Errorf("update %d is lost: %+v", id, k)
		}
	}
	w.maybe = nil
	w.cut, w.synced = false, true
	w.harden()
	return w.lookAtWants()
}

// lookAt holds one update against what its client knows of it.
func (w *world) lookAt(u Update, o Order) error {
	k := w.known[u.ID]
	if k == nil {
		i := slices.IndexFunc(w.maybe, func(o Order) bool {
			o.ID = u.ID
			return o.Update == u
		})
		if i < 0 {
			return fmt.Errorf("nobody was told of update %+v", u)
		}
		k = &simUpdate{Order: w.maybe[i]}
		k.ID = u.ID
		w.known[u.ID] = k
		w.maybe = slices.Delete(w.maybe, i, i+1)
	}
	switch {
	case u == k.Update && k.ended != done:
		k.ends = nil // it has not ended after all
		want := k.Order
		if want.Which = w.places(k.Which); !reflect.DeepEqual(o, want) {
			return fmt.Errorf("update %d would be carried out as %+v, want %+v", u.ID, o, want)
		}
	case len(k.ends) == 0 || u != k.ends[0]:
		return fmt.Errorf("update %d is %+v, want %+v or %v", u.ID, u, k.Update, k.ends)
	case k.ended != done:
		w.ended(k)
	}
	return nil
}

// lookAtWants follows what is wanted from the updates that are live, and the renewals. Of one that
// had no answer it is known then whether it counts.
func (w *world) lookAtWants() error {
	unsure := w.unsure
	w.unsure = nil
	err := w.compareWants(w.acts)
	if err == nil || unsure == nil {
		return err
	}
	w.acts = append(w.acts, *unsure)
	return w.compareWants(w.acts)
}

// wish is what clients want, until when, and what is spent.
type wish struct {
	wants  map[string]map[int]bool
	leases map[string]Lease
	spent  map[string]time.Time
}

// follow is what comes of acts.
func (w *world) follow(acts []act) wish {
	now := wish{map[string]map[int]bool{"a": {}, "b": {}}, map[string]Lease{}, map[string]time.Time{}}
	slices.SortFunc(acts, func(a, b act) int { return a.turn - b.turn })
	for _, a := range acts {
		if a.id == 0 {
			now.leases[a.client] = now.leases[a.client].from(a.at)
			continue
		}
		k := w.known[a.id]
		if k.spent != nil {
			maps.Copy(now.spent, k.spent.Until)
			maps.DeleteFunc(now.spent, func(_ string, until time.Time) bool { return until.Before(k.spent.At) })
		}
		if k.ends[0].State != Live {
			continue
		}
		if k.Set {
			clear(now.wants[k.Client])
		}
		if k.Enable {
			now.leases[k.Client] = Lease{Seconds: k.Lease}.from(k.ends[0].Ended)
		}
		for _, rec := range k.Which {
			if now.wants[k.Client][rec] = true; !k.Enable {
				delete(now.wants[k.Client], rec)
			}
		}
		if len(now.wants[k.Client]) == 0 {
			delete(now.leases, k.Client)
		}
	}
	return now
}

func (w *world) compareWants(acts []act) error {
	now := w.follow(acts)
	want, leases, spent := now.wants, now.leases, now.spent
	if got := w.store.Spent(); !maps.EqualFunc(got, spent, time.Time.Equal) {
		return fmt.Errorf("spent is %v, want %v", got, spent)
	}
	for _, got := range w.store.Wants() {
		if got.Lease != leases[got.Client] {
			return fmt.Errorf("client %s has lease %v, want %v", got.Client, got.Lease, leases[got.Client])
		}
		if which := w.places(slices.Collect(maps.Keys(want[got.Client]))); !slices.Equal(which, got.Which) {
			return fmt.Errorf("client %s wants %v, want %v", got.Client, got.Which, which)
		}
		delete(want, got.Client)
	}
	for client, which := range want {
		if len(which) > 0 {
			return fmt.Errorf("nothing is wanted of client %s, want %v", client, which)
		}
	}
	return nil
}
