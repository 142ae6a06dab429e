// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/textpoke/textpoke/records"
)

// call is one operation, and what came back.
type call struct {
	op   byte // set, remove, lookup
	at   records.Addr
	word uint64 // set: the cookie
}

// model is one function: the cookie of its record, or 0. What came back is a
// cookie for lookups, 1 or 0 for removals.
var model = porcupine.Model{
	Partition: func(h []porcupine.Operation) [][]porcupine.Operation {
		by := map[records.Addr][]porcupine.Operation{}
		for _, o := range h {
			a := o.Input.(call).at
			by[a] = append(by[a], o)
		}
		return slices.Collect(maps.Values(by))
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		had, in, out := state.(uint64), input.(call), output.(uint64)
		switch in.op {
		case 's':
			return true, in.word
		case 'r':
			return (out == 1) == (had != 0), uint64(0)
		default:
			return out == had, had
		}
	},
}

// history lets clients loose on a few functions while others come and go, and
// writes down what they did and saw.
func history(tab Table, clients, each int, seed uint64) []porcupine.Operation {
	const watched = 5
	var clock, cookies atomic.Int64
	var stop atomic.Bool
	var churn, all sync.WaitGroup
	churn.Go(func() {
		for !stop.Load() {
			for i := range 100 {
				_ = tab.Set(&Record{Func: at(watched + i), Args: 1, Image: uint64(1 << 60)})
			}
			for i := range 100 {
				tab.Remove(at(watched + i))
			}
			runtime.Gosched()
		}
	})
	lists := make([][]porcupine.Operation, clients)
	for client := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			for range each {
				in := call{op: "srllllll"[rng.IntN(8)], at: at(rng.IntN(watched))}
				if in.op == 's' {
					in.word = uint64(cookies.Add(1))
				}
				before := clock.Add(1)
				out := in.do(tab)
				lists[client] = append(lists[client], porcupine.Operation{ClientId: client, Input: in, Output: out,
					Call: before, Return: clock.Add(1)})
				if rng.IntN(4) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	all.Wait()
	stop.Store(true)
	churn.Wait()
	return slices.Concat(lists...)
}

func (c call) do(tab Table) uint64 {
	switch c.op {
	case 's':
		_ = tab.Set(&Record{Func: c.at, Args: 1, Image: uint64(c.word)})
		return 0
	case 'r':
		if tab.Remove(c.at) {
			return 1
		}
		return 0
	default:
		if r := tab.Lookup(c.at); r != nil {
			return r.Image.(uint64)
		}
		return 0
	}
}

// linear checks histories of fresh tables until one is not linearizable.
func linear(t *testing.T, fresh func() Table, histories int) bool {
	for seed := range histories {
		h := history(fresh(), 4, 400, uint64(seed))
		switch porcupine.CheckOperationsTimeout(model, h, time.Minute) {
		case porcupine.Illegal:
			return false
		case porcupine.Unknown:
			t.Fatal("the check took over a minute")
		}
	}
	return true
}

// TestLinearizable: every operation is as if it happened at one moment.
func TestLinearizable(t *testing.T) {
	histories := 12
	if *long {
		histories = 1500
	}
	for k, name := range KindNames() {
		t.Run(name, func(t *testing.T) {
			if !linear(t, func() Table { return must(New(TableKind(k), text)) }, histories) {
				t.Error("a history is not linearizable")
			}
		})
	}
}

// swapFirst is a resizable hash that is wrong: its new table is the only one
// before anything is in it.
type swapFirst struct {
	mu   sync.Mutex
	head atomic.Pointer[cells]
}

func (s *swapFirst) Lookup(at records.Addr) *Record {
	if c := s.head.Load().find(at); c != nil {
		return c.rec.Load()
	}
	return nil
}

func (s *swapFirst) Set(r *Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.head.Load()
	if 2*old.used >= len(old.slots) {
		to := newCells(2 * len(old.slots))
		s.head.Store(to)
		runtime.Gosched()
		for i := range old.slots {
			if r := old.slots[i].rec.Load(); r != nil {
				to.put(r)
			}
		}
	}
	s.head.Load().put(r)
	return nil
}

func (s *swapFirst) Remove(at records.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.head.Load().find(at); c != nil && c.rec.Load() != nil {
		c.rec.Store(nil)
		return true
	}
	return false
}

func (s *swapFirst) Len() int { return s.head.Load().used }

// blind is padding that hands numbers on without a grace period and without
// looking whose record it finds.
type blind struct{ *Padding }

func (b blind) Lookup(at records.Addr) *Record {
	i := b.number(at).Load()
	runtime.Gosched()
	return (*b.records.Load())[i].Load()
}

// TestLinearizabilityIsChecked: tables that are wrong are found out.
func TestLinearizabilityIsChecked(t *testing.T) {
	for name, fresh := range map[string]func() Table{
		"swap before copy": func() Table {
			s := &swapFirst{}
			s.head.Store(newCells(minCells))
			return s
		},
		"number without a grace period": func() Table { return blind{must(NewPadding(text))} },
	} {
		if linear(t, fresh, 300) {
			t.Errorf("%s: not found out", name)
		}
	}
}
