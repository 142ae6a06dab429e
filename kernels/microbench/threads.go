// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// on runs f in a thread of its own on one CPU, which ends with it: a thread whose
// CPU was chosen is not given back to others.
func on(cpu int, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := pin(cpu)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return done
}

// to times rounds to n targets that spin on CPUs of their own, and how long the
// first of these stood still for each.
func (m *machine) to(ctx context.Context, n int) (times, gaps []float64, err error) {
	var ready atomic.Int32
	var stop atomic.Bool
	var targets []<-chan error
	for i := range n {
		targets = append(targets, on(m.cpus[i+1], func() error {
			ready.Add(1)
			if i > 0 {
				for !stop.Load() {
				}
				return nil
			}
			gaps = standstills(&stop)
			return nil
		}))
	}
	sender := on(m.cpus[0], func() error {
		for ready.Load() < int32(n) && !stop.Load() && ctx.Err() == nil {
			runtime.Gosched()
		}
		for range roundsAPass {
			if err := ctx.Err(); err != nil {
				return err
			}
			start := time.Now()
			if err := syncCore(); err != nil {
				return err
			}
			times = append(times, since(start))
		}
		return nil
	})
	// A target that could not be put on its CPU never gets ready.
	ended := make(chan error, 1)
	var wait sync.WaitGroup
	for _, t := range targets {
		wait.Go(func() {
			if err := <-t; err != nil {
				stop.Store(true)
				select {
				case ended <- err:
				default:
				}
			}
		})
	}
	err = <-sender
	stop.Store(true)
	wait.Wait()
	select {
	case err = <-ended:
	default:
	}
	return times, gaps, err
}

// standstills looks at the clock until it is stopped, and returns the longest
// times between two looks, one for each round of a pass: when an interrupt takes
// less than a few looks, nothing is said.
func standstills(stop *atomic.Bool) []float64 {
	const looks = 500
	usual := make([]float64, 0, looks)
	last := time.Now()
	for range looks {
		now := time.Now()
		usual = append(usual, float64(now.Sub(last)))
		last = now
	}
	step := quantile(0.5, usual)
	var longest []float64
	for last = time.Now(); !stop.Load(); {
		now := time.Now()
		if gap := float64(now.Sub(last)); gap > 4*step && len(longest) < 100*roundsAPass {
			longest = append(longest, gap-step)
		}
		last = now
	}
	if len(longest) < roundsAPass/2 {
		return nil
	}
	slices.Sort(longest)
	return longest[max(0, len(longest)-roundsAPass):]
}

// transfer is what a cache line's way from one CPU to another takes, in
// nanoseconds: two threads write in turn.
func (m *machine) transfer(ctx context.Context) (float64, error) {
	var line struct {
		_    [64]byte
		turn atomic.Int64
		_    [64]byte
	}
	var stop atomic.Bool
	answer := on(m.cpus[len(m.cpus)-1], func() error {
		for want := int64(1); want < 2*bouncesAPass; want += 2 {
			for line.turn.Load() != want {
				if stop.Load() {
					return nil
				}
			}
			line.turn.Store(want + 1)
		}
		return nil
	})
	var took float64
	ask := on(m.cpus[0], func() error {
		start := time.Now()
		for i := int64(0); i < 2*bouncesAPass; i += 2 {
			line.turn.Store(i + 1)
			for n := 0; line.turn.Load() != i+2; n++ {
				if stop.Load() {
					return nil
				}
				if n%(1<<16) == 1<<16-1 && ctx.Err() != nil {
					return ctx.Err()
				}
			}
		}
		took = since(start)
		return nil
	})
	var errs [2]error
	select {
	case errs[0] = <-answer:
		if errs[0] != nil {
			stop.Store(true)
		}
		errs[1] = <-ask
	case errs[1] = <-ask:
		if errs[1] != nil {
			stop.Store(true)
		}
		errs[0] = <-answer
	}
	if errs[0] != nil {
		return 0, errs[0]
	}
	return took / (2 * bouncesAPass), errs[1]
}
