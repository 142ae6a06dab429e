// SPDX-License-Identifier: Apache-2.0

package fprobe

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/textpoke/textpoke/experiments/internal/clock"
	"github.com/textpoke/textpoke/records"
	"github.com/textpoke/textpoke/results/fit"
	"github.com/textpoke/textpoke/tracers"
	"github.com/textpoke/textpoke/tracers/dispatch"
)

// The function that is called, and the one that others trace.
const (
	mine      records.Addr = 0xffffffff81000010
	elsewhere records.Addr = 0xffffffff81000050
)

// nodes is what the pool has: enough for all threads.
const nodes = 4096

// cell is a combination with its tracers attached, ready to be called.
type cell struct {
	way  *dispatch.Fprobe
	exit bool
}

// newCell attaches one program, and others elsewhere, and counts one call.
func newCell(combination, others int, exit bool) (*cell, dispatch.Counts, error) {
	way, err := dispatch.NewFprobe(dispatch.Config{Sites: []records.Addr{mine}, Elsewhere: []records.Addr{elsewhere}},
		switches(combination), nodes)
	if err != nil {
		return nil, dispatch.Counts{}, err
	}
	c := &cell{way, exit}
	for range others {
		if err := c.way.Attach(tracers.NewOps("other", tracers.CountHits, 0, 1)); err != nil {
			return nil, dispatch.Counts{}, err
		}
	}
	program := tracers.NewOps("program", tracers.CountHits, 0, 0)
	want := uint64(1)
	if exit {
		program.Func, want = &tracers.Func{Name: "entry and exit", Entry: tracers.Hit, Exit: tracers.Hit}, 2
	}
	if err := c.way.Attach(program); err != nil {
		return nil, dispatch.Counts{}, err
	}
	ctx, n := &dispatch.Task{}, dispatch.Counts{}
	ctx.Count(&n)
	c.way.Call(0, ctx)
	if said := c.way.Cost(0); said != n || ctx.Hits != want {
		return nil, n, fmt.Errorf("%s: a call takes %+v and calls %d, and is said to take %+v", label(combination), n,
			ctx.Hits, said)
	}
	return c, n, nil
}

// prepare makes all combinations, and counts.
func (c *Config) prepare() (rows []*row, cells []*cell, err error) {
	for _, threads := range c.threadsHere() {
		for _, exit := range []bool{false, true} {
			for combination := combinations - 1; combination >= 0; combination-- {
				cell, n, err := newCell(combination, c.Others, exit)
				if err != nil {
					return nil, nil, err
				}
				rows, cells = append(rows, &row{combination: combination, exit: exit, counts: n, threads: threads,
					first: len(rows) < combinations}), append(cells,
					cell)
			}
		}
	}
	return rows, cells, nil
}

const (
	// leastRepeat is how long one measurement takes: long against a tick of the clock
	// and the start of a thread.
	leastRepeat = time.Millisecond / 2
	// chunk is how many calls lie between two looks at whether time is up.
	chunk = 64
)

// time times all cells in turns: what disturbs the machine for a while disturbs all.
// Beside them it times a function that nobody traces, by number of threads.
func (c *Config) time(ctx context.Context, rows []*row, cells []*cell) (untraced map[int]*fit.Estimate, err error) {
	untracedWay, err := dispatch.NewFprobe(dispatch.Config{Sites: []records.Addr{mine}}, dispatch.FprobeCosts{}, 0)
	if err != nil {
		return nil, err
	}
	nobody, threads := &cell{way: untracedWay}, c.threadsHere()
	each, err := clock.Turns(ctx, c.Repeats, len(threads)+len(cells), func(i int) float64 {
		if i < len(threads) {
			return nobody.time(threads[i])
		}
		i -= len(threads)
		return cells[i].time(rows[i].threads)
	})
	if err != nil {
		return nil, err
	}
	untraced = map[int]*fit.Estimate{}
	for i := range each {
		m, err := fit.Median(each[i])
		if err != nil {
			return nil, err
		}
		if i < len(threads) {
			untraced[threads[i]] = &m
			continue
		}
		rows[i-len(threads)].each, rows[i-len(threads)].live = each[i], &m
	}
	return untraced, nil
}

// time is the time of one call and its return while so many threads call, in
// nanoseconds.
func (c *cell) time(threads int) float64 {
	var done atomic.Bool
	var calls atomic.Int64
	var ready, all sync.WaitGroup
	ready.Add(threads)
	start := make(chan struct{})
	var begin time.Time
	for i := range threads {
		all.Go(func() {
			ctx, n := &dispatch.Task{}, int64(0)
			for range chunk { // what comes first finds cold caches
				c.way.Call(0, ctx)
			}
			ready.Done()
			<-start
			for !done.Load() {
				for range chunk {
					c.way.Call(0, ctx)
				}
				n += chunk
				if i == 0 && time.Since(begin) >= leastRepeat {
					done.Store(true)
				}
			}
			calls.Add(n)
		})
	}
	ready.Wait()
	begin = time.Now()
	close(start)
	all.Wait()
	return float64(threads) * float64(time.Since(begin).Nanoseconds()) / float64(max(calls.Load(), 1))
}
