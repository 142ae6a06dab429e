// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// take takes one point after the other. The next one is asked for when the last one has the hands that it needs: nothing
// is begun, and counted as begun, beside a point that must be alone.
func (s *session) take(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for ctx.Err() == nil && !s.idle() && s.hands.Acquire(ctx, 1) == nil {
		m := s.next(ctx)
		if m == nil {
			s.hands.Release(1)
			continue
		}
		placed := make(chan struct{})
		all.Go(func() {
			p := &share{s.hands, 1, sync.OnceFunc(func() { close(placed) })}
			s.job(ctx, m, p)
			p.leave()
			s.mu.Lock()
			s.last = time.Now()
			s.mu.Unlock()
		})
		<-placed
	}
}

// share is how many of the worker's hands a point has.
type share struct {
	hands  *semaphore.Weighted
	n      int64
	placed func() // lets the worker go on
}

// set waits until the point has so many.
func (p *share) set(ctx context.Context, n int64) error {
	if n > p.n {
		if err := p.hands.Acquire(ctx, n-p.n); err != nil {
			return err
		}
	} else {
		p.hands.Release(p.n - n)
	}
	p.n = n
	p.placed()
	return nil
}

// leave gives all of them back.
func (p *share) leave() {
	p.placed()
	p.hands.Release(p.n)
}

// needs is how many hands a point of a run needs; the run is nil before it is opened.
func (s *session) needs(alone bool, r *ready) int64 {
	if alone || r == nil || r.points.Alone() {
		return int64(s.Jobs)
	}
	return 1
}
