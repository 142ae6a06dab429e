// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is what a journal ought to know: maps.
type model struct {
	t     *testing.T
	dir   string
	store *Store
	clock time.Time

	updates map[int64]Order
	wants   map[[2]string][]int
	last    int64 // ID
	batch   int64
}

// TestModel holds the journal against maps, through restarts and kills.
func TestModel(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := &model{t: t, dir: t.TempDir(), clock: time.Unix(1000, 0).UTC(), updates: map[int64]Order{},
			wants: map[[2]string][]int{}}
		m.store = openIn(t, m.dir)
		defer func() { _ = m.store.Close() }()
		r.Repeat(map[string]func(*rapid.T){
			"accept": m.accept, "answer": m.answer, "compact": m.compact, "restart": m.restart, "kill": m.kill, "": m.check,
		})
	})
}

func drawWhich(r *rapid.T) []int {
	which := rapid.SliceOfNDistinct(rapid.IntRange(0, 99), 1, 8, rapid.ID).Draw(r, "records")
	slices.Sort(which)
	return which
}

func (m *model) tick() time.Time {
	m.clock = m.clock.Add(time.Second)
	return m.clock
}

func (m *model) accept(r *rapid.T) {
	o := order(rapid.SampledFrom([]string{"a", "b"}).Draw(r, "client"), rapid.SampledFrom([]string{"", "k", "l"}).Draw(r,
		"key"), drawWhich(r)...)
	o.Enable = rapid.Bool().Draw(r, "enable")
	o.Set = o.Enable && rapid.Bool().Draw(r, "set")
	o.Digest = rapid.SampledFrom([]string{"d", "e"}).Draw(r, "digest")
	o.Submitted, o.State = m.tick(), Queued
	var known *Order
	for _, u := range m.updates {
		if o.Key != "" && u.Client == o.Client && u.Key == o.Key {
			known = &u
		}
	}
	entered := false
	u, err := m.store.Accept(o, func(Update) { entered = true })
	switch {
	case known != nil && known.Digest != o.Digest:
		if !errors.Is(err, ErrKeyReused) || entered {
			r.Fatalf("%+v, %v, want ErrKeyReused", u, err)
		}
	case known != nil:
		if err != nil || entered || u != known.Update {
			r.Fatalf("%+v, %v, want %+v", u, err, known.Update)
		}
	default:
		if err != nil || !entered || u.ID <= m.last {
			r.Fatalf("%+v, %v after %d", u, err, m.last)
		}
		m.last = u.ID
		o.ID = u.ID
		m.updates[u.ID] = o
	}
}

// open is the IDs of updates that have not ended, ascending.
func (m *model) open() (ids []int64) {
	for _, id := range slices.Sorted(maps.Keys(m.updates)) {
		if m.updates[id].State == Queued {
			ids = append(ids, id)
		}
	}
	return ids
}

func (m *model) answer(r *rapid.T) {
	ids := m.open()
	if len(ids) == 0 {
		r.Skip()
	}
	n := rapid.IntRange(1, min(3, len(ids))).Draw(r, "n")
	m.batch++
	var us []Update
	for _, id := range ids[:n] {
		o := m.updates[id]
		o.State = rapid.SampledFrom([]State{Live, Failed, Cancelled, Expired}).Draw(r, "state")
		o.Batch, o.Ended, o.Began = m.batch, m.tick(), m.clock
		if o.State == Failed {
			o.Error = "why"
		}
		m.updates[id] = o
		us = append(us, o.Update)
		if o.State == Live {
			m.follow(o)
		}
	}
	if err := m.store.Answer(us, nil); err != nil {
		r.Fatal(err)
	}
}

// follow is what a client wants once an update of its is live.
func (m *model) follow(o Order) {
	who := [2]string{o.Client, o.Ops}
	if o.Set {
		m.wants[who] = o.Which
		return
	}
	which := slices.DeleteFunc(slices.Clone(m.wants[who]), func(n int) bool { return slices.Contains(o.Which, n) })
	if o.Enable {
		which = append(which, o.Which...)
		slices.Sort(which)
	}
	if m.wants[who] = which; len(which) == 0 {
		delete(m.wants, who)
	}
}

func (m *model) compact(r *rapid.T) {
	keep := Keep{
		Age:     time.Duration(rapid.IntRange(0, 5).Draw(r, "age")) * time.Second,
		Updates: rapid.IntRange(0, 5).Draw(r, "updates"),
	}
	want := int64(0)
	young := 0
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.updates))) {
		u := m.updates[id]
		if u.State == Queued {
			continue
		}
		if keep.Age > 0 && u.Ended.Before(m.clock.Add(-keep.Age)) || keep.Updates > 0 && young >= keep.Updates {
			delete(m.updates, id)
			want++
			continue
		}
		young++
	}
	if n, err := m.store.Compact(m.t.Context(), m.clock, keep, func() {}); err != nil || n != want {
		r.Fatalf("%d removed, %v, want %d", n, err, want)
	}
}

func (m *model) restart(r *rapid.T) {
	if err := m.store.Close(); err != nil {
		r.Fatal(err)
	}
	m.reopen(r)
}

// kill goes on with what a killed process would have left.
func (m *model) kill(r *rapid.T) {
	left := image(m.t, m.dir)
	if err := m.store.Close(); err != nil {
		r.Fatal(err)
	}
	m.dir = left
	m.reopen(r)
}

func (m *model) reopen(r *rapid.T) {
	var err error
	if m.store, err = Open(m.t.Context(), m.dir, someone); err != nil {
		r.Fatal(err)
	}
}

func (m *model) check(r *rapid.T) {
	ctx := m.t.Context()
	var all []Update
	var open []Order
	for _, id := range slices.Sorted(maps.Keys(m.updates)) {
		o := m.updates[id]
		all = append(all, o.Update)
		if o.State == Queued {
			open = append(open, o)
		}
		if got, err := m.store.Update(ctx, id); err != nil || got != o.Update {
			r.Fatalf("%+v, %v, want %+v", got, err, o.Update)
		}
	}
	if _, err := m.store.Update(ctx, m.last+1); !errors.Is(err, ErrNotFound) {
		r.Fatalf("%v, want ErrNotFound", err)
	}
	var wants []Want
	for who, which := range m.wants {
		wants = append(wants, Want{who[0], who[1], which, tagOf(newWhich(which).Bitmap), Lease{}})
	}
	slices.SortFunc(wants, func(a, b Want) int { return strings.Compare(a.Client, b.Client) })
	m.same(r, "updates", func() (any, error) { us, _, err := m.store.Updates(ctx, Query{Limit: 1000}); return us, err }, all)
	m.same(r, "unanswered", func() (any, error) { return m.store.Unanswered(), nil }, open)
	m.same(r, "wants", func() (any, error) { return m.store.Wants(), nil }, wants)
	m.same(r, "last batch", func() (any, error) { return m.store.LastBatch(), nil }, m.batch)
	newest := slices.Clone(all)
	slices.Reverse(newest)
	q := Query{Client: "a", State: Live, After: m.last / 2, Limit: 2}
	some := slices.DeleteFunc(all, func(u Update) bool {
		return u.Client != q.Client || u.State != q.State ||
			u.ID <= q.After
	})
	m.same(r, "newest first", func() (any, error) {
		us, _, err := m.store.Updates(ctx, Query{Newest: true, Limit: 3})
		return us, err
	}, newest[:min(len(newest), 3)])
	m.same(r, "some updates", func() (any, error) { us, _, err := m.store.Updates(ctx, q); return us, err }, some[:min(len(some), 2)])
}

func (m *model) same(r *rapid.T, what string, read func() (any, error), want any) {
	got, err := read()
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		r.Fatalf("%s: %v\n%s", what, err, cmp.Diff(got, want))
	}
}
