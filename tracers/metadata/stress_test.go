// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/records"
)

// The functions of the stress test: some that always have a record, some that
// never have one, and some that come and go.
const (
	stays  = 64
	never  = 64
	passes = 1500
)

// stress is a table that is looked at while it changes.
type stress struct {
	Table
	rounds int
	looked atomic.Int64 // lookups so far
	tables atomic.Int64 // times that a changer of a Resizable found another first table
	stop   atomic.Bool
}

// TestStress looks functions up while others fill and drain the table, so that it
// grows and shrinks all the time.
func TestStress(t *testing.T) {
	each(t, func(t *testing.T, tab Table) {
		s := &stress{Table: tab, rounds: 10}
		if *long {
			s.rounds = 400
		}
		for i := range stays {
			if err := tab.Set(&Record{Func: at(i), Args: 1}); err != nil {
				t.Fatal(err)
			}
		}
		var lookups, changers errgroup.Group
		for reader := range 2 {
			lookups.Go(func() error { return s.look(uint64(reader)) })
		}
		for half := range 2 {
			changers.Go(func() error { return s.fillAndDrain(half) })
		}
		err := changers.Wait()
		s.stop.Store(true)
		if err2 := lookups.Wait(); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if _, ok := tab.(*Resizable); ok && s.tables.Load() < int64(s.rounds) {
			t.Errorf("%d tables were seen in %d rounds", s.tables.Load(), s.rounds)
		}
		if tab.Len() != stays {
			t.Errorf("%d records are left, want %d", tab.Len(), stays)
		}
	})
}

// look looks all functions up until it is told to stop.
func (s *stress) look(seed uint64) error {
	rng := rand.New(rand.NewPCG(5, seed))
	for !s.stop.Load() {
		i := rng.IntN(stays + never + passes)
		r := s.Lookup(at(i))
		s.looked.Add(1)
		err := error(nil)
		switch {
		case r != nil && r.Func != at(i):
			err = fmt.Errorf("function %d: found the record of %v", i, r.Func)
		case i < stays && r == nil:
			err = fmt.Errorf("function %d is there and was not found", i)
		case i >= stays && i < stays+never && r != nil:
			err = fmt.Errorf("function %d was never there and was found", i)
		}
		if err != nil {
			s.stop.Store(true)
			return err
		}
	}
	return nil
}

// fillAndDrain lets one half of those that pass come and go, until enough were
// looked up meanwhile. What it put in itself it must find.
func (s *stress) fillAndDrain(half int) error {
	var mine []records.Addr
	for i := half; i < passes; i += 2 {
		mine = append(mine, at(stays+never+i))
	}
	var last *cells
	seen := func() {
		if r, ok := s.Table.(*Resizable); ok && r.head.Load() != last {
			last = r.head.Load()
			s.tables.Add(1)
		}
	}
	for round := 0; (round < s.rounds || s.looked.Load() < int64(1000*s.rounds)) && !s.stop.Load(); round++ {
		for _, a := range mine {
			r := &Record{Func: a, Args: 2}
			if err := s.Set(r); err != nil {
				return err
			}
			seen()
			if s.Lookup(a) != r {
				return fmt.Errorf("%v was put in and not found", a)
			}
		}
		for _, a := range mine {
			if !s.Remove(a) || s.Lookup(a) != nil {
				return fmt.Errorf("%v was there, and should have gone", a)
			}
			seen()
		}
	}
	return nil
}

// hidden looks a few functions up that are always there, while changes are made, and
// says whether one was not found.
func hidden(t *testing.T, tab Table, changes int, change func(i int)) error {
	const there = 3
	for i := range there {
		if err := tab.Set(&Record{Func: at(i), Args: 1}); err != nil {
			t.Fatal(err)
		}
	}
	var stop atomic.Bool
	var g errgroup.Group
	g.Go(func() error {
		for !stop.Load() {
			for i := range there {
				if tab.Lookup(at(i)) == nil {
					return fmt.Errorf("function %d was not found", i)
				}
			}
		}
		return nil
	})
	for i := range changes {
		change(there + i%1000)
	}
	stop.Store(true)
	return g.Wait()
}

// TestNewcomerHidesNobody: who comes first in a chain has the others behind it from
// the start.
func TestNewcomerHidesNobody(t *testing.T) {
	f := NewFixed(1)
	if err := hidden(t, f, 300_000, func(i int) {
		_ = f.Set(&Record{Func: at(i), Args: 1})
		f.Remove(at(i))
	}); err != nil {
		t.Error(err)
	}
}

// TestMoveHidesNobody: who moves to another table is in one of the two. A small table
// moves with every few newcomers.
func TestMoveHidesNobody(t *testing.T) {
	tab, moves := NewResizable(), 0
	if err := hidden(t, tab, 300_000, func(i int) {
		before := tab.head.Load()
		_ = tab.Set(&Record{Func: at(i), Args: 1})
		tab.Remove(at(i))
		if tab.head.Load() != before {
			moves++
		}
	}); err != nil {
		t.Error(err)
	}
	if moves < 10_000 {
		t.Errorf("%d moves", moves)
	}
}

// TestOnAnOldTable: who searches a table that has been left since goes on to those
// that came after it, however many.
func TestOnAnOldTable(t *testing.T) {
	tab := NewResizable()
	var olds []*cells
	look := func(functions int) {
		t.Helper()
		if c := tab.head.Load(); len(olds) == 0 || olds[len(olds)-1] != c {
			olds = append(olds, c)
		}
		for _, c := range olds {
			old := &Resizable{}
			old.head.Store(c)
			for i := range functions {
				if got, want := old.Lookup(at(i)), tab.Lookup(at(i)); got != want || (i < tab.Len()) != (got != nil) {
					t.Fatalf("%d functions, %d cells of old: function %d: %v, want %v", functions, len(c.slots), i,
						got, want)
				}
			}
		}
	}
	const n = 100
	for i := range n {
		if err := tab.Set(&Record{Func: at(i), Args: 1}); err != nil {
			t.Fatal(err)
		}
		look(n)
	}
	for i := n - 1; i >= 0; i-- {
		tab.Remove(at(i))
		look(n)
	}
	if len(olds) < 8 {
		t.Errorf("%d tables", len(olds))
	}
}

// TestPaddingGrows: a number is never outside the array that a lookup sees.
func TestPaddingGrows(t *testing.T) {
	var now atomic.Pointer[Padding]
	var last atomic.Int64 // the function that comes next
	now.Store(must(NewPadding(Text{text.Start, at(600)})))
	var stop atomic.Bool
	var g errgroup.Group
	g.Go(func() error {
		for !stop.Load() {
			a := at(int(last.Load()))
			if r := now.Load().Lookup(a); r != nil && r.Func != a {
				return fmt.Errorf("found the record of %v", r.Func)
			}
		}
		return nil
	})
	for range 200 {
		p := must(NewPadding(Text{text.Start, at(600)}))
		now.Store(p)
		for i := range 520 {
			last.Store(int64(i))
			_ = p.Set(&Record{Func: at(i), Args: 1})
		}
	}
	stop.Store(true)
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
