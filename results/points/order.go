// SPDX-License-Identifier: Apache-2.0

package points

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// aheadPerWorker is how many points a worker may be ahead of the one that
	// everything waits for: enough to keep all busy where points differ, few
	// enough that what waits takes no memory to speak of.
	aheadPerWorker = 16
	// itemsPerTurn is how many items a point can make before it waits for its turn.
	itemsPerTurn = 4
)

// turn is a point's place in the order.
type turn[T any] struct {
	items chan T
	err   error // valid once items is closed
}

// inOrder makes n points on up to workers goroutines. What a point gives is taken
// by this goroutine, in the order of the points: at once from the one whose turn
// it is, later from those behind it.
//
// After a point fails no more are begun, and nothing behind it is taken, so that
// what was taken is the same for any number of workers. When ctx ends, the points
// that were finished all the same are taken, too. No goroutine is left behind.
func inOrder[T any](ctx context.Context, n, workers int, point func(ctx context.Context, i int, give func(T)) error,
	take func(T) error) error {
	if workers == 1 {
		return oneByOne(ctx, n, point, take)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turns := make(chan *turn[T], aheadPerWorker*workers)
	var begun sync.WaitGroup
	begun.Go(func() {
		defer close(turns)
		begin(ctx, n, workers, turns, point)
	})
	defer begun.Wait()
	var refused, failed, cut error
	taken := 0
	for t := range turns {
		for item := range t.items {
			if refused != nil || failed != nil {
				continue // points must not wait for ever
			}
			if refused = take(item); refused != nil {
				cancel()
			}
		}
		taken++
		if Stopped(t.err) {
			cut = cmp.Or(cut, t.err)
		} else {
			failed = cmp.Or(failed, t.err)
		}
	}
	if taken < n {
		cut = cmp.Or(cut, ctx.Err())
	}
	return cmp.Or(refused, failed, cut)
}

// oneByOne is inOrder on this goroutine alone: nothing runs beside a point, and
// none is begun before the rows of the last are out.
func oneByOne[T any](ctx context.Context, n int, point func(ctx context.Context, i int, give func(T)) error,
	take func(T) error) error {
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		var refused error
		err := point(ctx, i, func(item T) {
			if refused == nil {
				refused = take(item)
			}
		})
		if err = cmp.Or(refused, err); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the points in their order, until one fails.
func begin[T any](ctx context.Context, n, workers int, turns chan<- *turn[T], point func(ctx context.Context, i int,
	give func(T)) error) {
	var group errgroup.Group
	group.SetLimit(workers)
	var failed atomic.Bool
	for i := range n {
		t := &turn[T]{items: make(chan T, itemsPerTurn)}
		if failed.Load() || ctx.Err() != nil {
			break
		}
		turns <- t // taken as long as there are any
		group.Go(func() error {
			defer close(t.items)
			if t.err = point(ctx, i, func(item T) { t.items <- item }); t.err != nil {
				failed.Store(true)
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in the turns
}
