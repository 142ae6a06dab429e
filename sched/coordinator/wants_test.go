// SPDX-License-Identifier: Apache-2.0

package coordinator

import (
	"maps"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring"
	"pgregory.net/rapid"
)

// drawRequest draws a request about few records.
func drawRequest(t *rapid.T) Request {
	r := Request{
		Client:  rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "client"),
		Enable:  rapid.Bool().Draw(t, "enable"),
		Records: rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 63, 64, 65, 99}), 0, 6).Draw(t, "records"),
	}
	if r.Set = r.Enable && rapid.Bool().Draw(t, "set"); r.Set {
		slices.Sort(r.Records)
	}
	return r
}

// wanted is all that wants remember, to be compared.
func (w *wants) wanted() map[string][]int {
	out := map[string][]int{}
	for client := range maps.Keys(w.clients) {
		out[client] = w.of(client)
	}
	return out
}

// TestTakeBack leaves everything as it was.
func TestTakeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWants(100)
		for range rapid.IntRange(0, 10).Draw(t, "before") {
			w.add(drawRequest(t))
		}
		before, users := w.wanted(), slices.Clone(w.users)
		var us []undo
		for range rapid.IntRange(0, 10).Draw(t, "then") {
			us = append(us, w.add(drawRequest(t)))
		}
		w.takeBack(us)
		if got := w.wanted(); !maps.EqualFunc(got, before, slices.Equal) || !slices.Equal(w.users, users) {
			t.Fatalf("%v, want %v; users %v, want %v", got, before, w.users, users)
		}
	})
}

// TestWantsAreSets: what a client wants is what a map of its requests would say,
// and a record has as many users as clients want it.
func TestWantsAreSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWants(100)
		model := map[string]map[int]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			r := drawRequest(t)
			w.add(r)
			if r.Set {
				model[r.Client] = nil
			}
			if model[r.Client] == nil {
				model[r.Client] = map[int]bool{}
			}
			for _, rec := range r.Records {
				if model[r.Client][rec] = true; !r.Enable {
					delete(model[r.Client], rec)
				}
			}
			users := make([]int, 100)
			for client, mine := range model {
				if want := slices.Sorted(maps.Keys(mine)); !slices.Equal(w.of(client), want) {
					t.Fatalf("client %s wants %v, want %v", client, w.of(client), want)
				}
				for rec := range mine {
					users[rec]++
				}
			}
			for rec, n := range users {
				if int(w.users[rec]) != n {
					t.Fatalf("record %d: %d users, want %d", rec, int(w.users[rec]), n)
				}
			}
			for client := range maps.Keys(w.clients) {
				if len(model[client]) == 0 {
					t.Fatalf("client %s wants nothing and is remembered", client)
				}
			}
		}
	})
}

// TestFewTakeLittle: what clients that want one record each take does not grow with the
// number of records.
func TestFewTakeLittle(t *testing.T) {
	bytes := func(b *roaring.Bitmap) int { return int(b.GetSizeInBytes()) }
	w := newWants(1 << 20)
	u := w.add(Request{Client: "a", Enable: true, Records: []int{7, 1 << 19}})
	if n := bytes(w.clients["a"]) + bytes(u.changed); n > 100 {
		t.Errorf("%d bytes for two records of a client", n)
	}
	all := make([]int, 1<<20)
	for i := range all {
		all[i] = i
	}
	w.add(Request{Client: "a", Enable: true, Records: all})
	if n := bytes(w.clients["a"]); n > 1<<17+200 {
		t.Errorf("%d bytes for all records of a client", n)
	}
	w.add(Request{Client: "a", Records: all[3:]})
	if n := bytes(w.clients["a"]); n > 100 || w.clients["a"].GetCardinality() != 3 {
		t.Errorf("%d bytes when %d records are left", n, w.clients["a"].GetCardinality())
	}
}
