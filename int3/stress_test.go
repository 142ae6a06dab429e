// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/cpus"
)

// stress is a patcher that publishes one batch after the other, and handlers
// that come and go. They come no more once a batch is taken away: otherwise one
// counter for all might never get to nought.
type stress struct {
	table *Table
	kind  Lookup
	size  int          // addresses in a batch
	batch atomic.Int64 // number of the batch, before it is published
	armed atomic.Bool  // handlers come
	stop  atomic.Bool
	inside,
	visits atomic.Int64
}

// handler runs on one CPU. Once it got in, the batch stays what it is until it
// leaves, and all of it can be found.
func (s *stress) handler(cpu int) error {
	rng := rand.New(rand.NewPCG(7, uint64(cpu)))
	var p cpus.Probe
	for !s.stop.Load() {
		if !s.armed.Load() || !s.table.Enter(cpu) {
			runtime.Gosched()
			continue
		}
		s.inside.Add(1)
		n := int(s.batch.Load())
		for range 1 + rng.IntN(4) {
			if rng.IntN(4) == 0 {
				runtime.Gosched()
			}
			if err := wantAct(n, rng.IntN(s.size), s.table.Find); err != nil {
				return fmt.Errorf("CPU %d: %w", cpu, err)
			}
			if _, found := s.table.Find(addr(n-1, rng.IntN(s.size)), &p); found == cpus.Hit {
				return fmt.Errorf("CPU %d: found in batch %d what was in the one before", cpu, n)
			}
		}
		if now := int(s.batch.Load()); now != n {
			return fmt.Errorf("CPU %d: batch %d became %d while it was in", cpu, n, now)
		}
		s.inside.Add(-1)
		s.visits.Add(1)
		s.table.Leave(cpu)
		runtime.Gosched()
	}
	return nil
}

// patcher waits until somebody has been in each batch, so that none goes by
// unseen, and for nobody to be in before it takes the batch away.
func (s *stress) patcher(failed <-chan struct{}, batches int) error {
	defer s.stop.Store(true)
	wait := func(done func() bool) bool {
		for !done() {
			select {
			case <-failed:
				return false
			default:
				runtime.Gosched()
			}
		}
		return true
	}
	for n := range batches {
		s.batch.Store(int64(n))
		before := s.visits.Load()
		s.armed.Store(true) // before there is anything to find, to be hard
		publish(s.table, s.kind, n, s.size)
		if !wait(func() bool { return s.visits.Load() > before }) {
			return nil
		}
		s.armed.Store(false)
		s.table.Unpublish()
		if !wait(s.table.Drained) {
			return nil
		}
		if in := s.inside.Load(); in != 0 {
			return fmt.Errorf("batch %d: drained while %d handlers are in", n, in)
		}
		s.table.Clear()
	}
	return nil
}

func TestTableStress(t *testing.T) {
	const handlers = 4
	batches := 500
	if *long {
		batches = 20_000
	}
	for _, r := range variants {
		for _, k := range kinds() {
			t.Run(fmt.Sprintf("%v/%v", r, k), func(t *testing.T) {
				s := &stress{table: NewTable(r, handlers), kind: k, size: 64}
				g, ctx := errgroup.WithContext(t.Context())
				for cpu := range handlers {
					g.Go(func() error { return s.handler(cpu) })
				}
				g.Go(func() error { return s.patcher(ctx.Done(), batches) })
				if err := g.Wait(); err != nil {
					t.Fatal(err)
				}
				if visits := s.visits.Load(); visits < int64(batches) {
					t.Errorf("%d visits of %d batches", visits, batches)
				}
			})
		}
	}
}

// TestCounterLosesNothing: however handlers meet in one counter, all references
// come back.
func TestCounterLosesNothing(t *testing.T) {
	const handlers, visits = 4, 400_000
	tab := NewTable(SharedRef, handlers)
	publish(tab, Vector, 0, 1)
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for cpu := range handlers {
		wg.Go(func() {
			<-begin
			for range visits {
				if !tab.Enter(cpu) {
					t.Errorf("CPU %d did not get in", cpu)
					return
				}
				tab.Leave(cpu)
			}
		})
	}
	close(begin)
	wg.Wait()
	if n := tab.References(); n != 1 {
		t.Errorf("%d references are left, want the patcher's own", n)
	}
	tab.Unpublish()
	if !tab.Drained() {
		t.Error("not drained, and nobody is in")
	}
}

// TestPublishIsWhole: a handler that waits at the door gets in when there is
// something to find, not before.
func TestPublishIsWhole(t *testing.T) {
	const batches = 1000
	for _, r := range variants {
		tab := NewTable(r, 2)
		var stop atomic.Bool
		var wg sync.WaitGroup
		var visits atomic.Int64
		wg.Go(func() {
			var p cpus.Probe
			for spin := 1; !stop.Load(); spin++ {
				if spin%1000 == 0 {
					runtime.Gosched()
				}
				if !tab.Enter(0) {
					continue
				}
				if _, found := tab.Find(addr(0, 0), &p); found != cpus.Hit {
					t.Errorf("%v: got in, and there is nothing to find", r)
					stop.Store(true)
				}
				tab.Leave(0)
				visits.Add(1)
			}
		})
		for i := 0; i < batches && !stop.Load(); i++ {
			before := visits.Load()
			publish(tab, Vector, 0, 1)
			for visits.Load() == before && !stop.Load() {
				runtime.Gosched()
			}
			tab.Unpublish()
			for !tab.Drained() {
				runtime.Gosched()
			}
			tab.Clear()
		}
		stop.Store(true)
		wg.Wait()
	}
}
