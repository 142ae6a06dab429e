// SPDX-License-Identifier: Apache-2.0

package points

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

// busy is n points that give some items each, after a while.
type busy struct {
	items  []int           // of each point
	pause  []time.Duration // before each item
	fail   int             // point that fails, behind its items; -1 for none
	begun  atomic.Int64
	taken  atomic.Int64
	ahead  atomic.Int64 // most points that were begun and not taken
	atOnce atomic.Int64
	most   atomic.Int64 // points at the same time
}

var errPoint = errors.New("a point failed")

func raise(to *atomic.Int64, n int64) {
	for {
		old := to.Load()
		if old >= n || to.CompareAndSwap(old, n) {
			return
		}
	}
}

func (p *busy) point(_ context.Context, i int, give func(string)) error {
	raise(&p.most, p.atOnce.Add(1))
	defer p.atOnce.Add(-1)
	raise(&p.ahead, p.begun.Add(1)-p.taken.Load())
	for k := range p.items[i] {
		time.Sleep(p.pause[i])
		give(fmt.Sprintf("%d.%d", i, k))
	}
	if i == p.fail {
		return errPoint
	}
	return nil
}

// want is what a loop takes.
func (p *busy) want() (out []string) {
	for i, n := range p.items {
		for k := range n {
			out = append(out, fmt.Sprintf("%d.%d", i, k))
		}
		if i == p.fail {
			break
		}
	}
	return out
}

// TestInOrder: for any number of workers, it takes what a loop takes.
func TestInOrder(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(t, "n")
		workers := rapid.IntRange(1, 8).Draw(t, "workers")
		p := &busy{
			items: rapid.SliceOfN(rapid.IntRange(0, 2*itemsPerTurn), n, n).Draw(t, "items"),
			fail:  rapid.IntRange(-1, n-1).Draw(t, "fail"),
		}
		for i := range n {
			p.pause = append(p.pause, time.Duration(i*7%5)*time.Microsecond)
		}
		var got []string
		err := inOrder(t.Context(), n, workers, p.point, func(s string) error {
			got = append(got, s)
			return nil
		})
		if p.fail >= 0 != errors.Is(err, errPoint) || p.fail < 0 && err != nil {
			t.Errorf("point %d fails: %v", p.fail, err)
		}
		if !slices.Equal(got, p.want()) {
			t.Errorf("got %v, want %v", got, p.want())
		}
		if p.most.Load() > int64(workers) {
			t.Errorf("%d points at a time on %d workers", p.most.Load(), workers)
		}
	})
}

// TestInOrderStaysNear lets everything wait for the first point: the others do not
// run arbitrarily far ahead.
func TestInOrderStaysNear(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	const n, workers = 10_000, 2
	release := make(chan struct{})
	var begun, taken atomic.Int64
	go func() {
		for last := int64(-1); last != begun.Load(); time.Sleep(20 * time.Millisecond) {
			last = begun.Load()
		}
		close(release)
	}()
	err := inOrder(t.Context(), n, workers, func(_ context.Context, i int, give func(int)) error {
		if i == 0 {
			<-release
		}
		if ahead := begun.Add(1) - taken.Load(); ahead > (aheadPerWorker+1)*workers+2 {
			t.Errorf("%d points are ahead", ahead)
		}
		give(i)
		return nil
	}, func(i int) error {
		if i != int(taken.Load()) {
			t.Errorf("%d is taken after %d", i, taken.Load()-1)
		}
		taken.Add(1)
		return nil
	})
	if err != nil || taken.Load() != n {
		t.Errorf("%d of %d points, %v", taken.Load(), n, err)
	}
}

// TestInOrderStops: after a point has failed, nobody begins all the others.
func TestInOrderStops(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	for _, workers := range []int{1, 3} {
		var begun atomic.Int64
		err := inOrder(t.Context(), 100_000, workers, func(context.Context, int, func(int)) error {
			begun.Add(1)
			return errPoint
		}, func(int) error { return nil })
		if !errors.Is(err, errPoint) || begun.Load() > int64((aheadPerWorker+1)*workers+1) {
			t.Errorf("%d workers began %d points: %v", workers, begun.Load(), err)
		}
	}
}

// TestInOrderEnds ends it from outside, and from the taker: nothing hangs, and
// nothing is left behind.
func TestInOrderEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent()) // what tests before it left is theirs
	for _, workers := range []int{1, 3} {
		for _, ours := range []bool{true, false} {
			ctx, cancel := context.WithCancel(t.Context())
			taken := 0
			err := inOrder(ctx, 1000, workers, func(ctx context.Context, i int, give func(int)) error {
				for k := range 2 * itemsPerTurn {
					give(k)
				}
				return ctx.Err()
			}, func(int) error {
				if taken++; taken < 20 {
					return nil
				}
				if ours {
					return errPoint
				}
				cancel()
				return nil
			})
			if want := map[bool]error{true: errPoint, false: context.Canceled}[ours]; !errors.Is(err, want) {
				t.Errorf("%d workers: %v, want %v", workers, err, want)
			}
			if ours && taken != 20 || taken < 20 {
				t.Errorf("%d workers: %d items were taken", workers, taken)
			}
			cancel()
		}
	}
}
