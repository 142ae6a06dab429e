// SPDX-License-Identifier: Apache-2.0

// Package clock times code that takes nanoseconds on this machine.
package clock

import (
	"context"
	"time"

	"github.com/textpoke/textpoke/results/fit"
)

// Times are measurements of something, and their median: nothing is assumed about how
// they spread.
type Times struct {
	fit.Estimate
	Each []float64
}

// Turns takes so many measurements of each of n things, one thing after the other and
// then again: what disturbs the machine for a while disturbs all of them.
func Turns(ctx context.Context, repeats, n int, measure func(i int) float64) ([]Times, error) {
	out := make([]Times, n)
	for range repeats {
		for i := range out {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			out[i].Each = append(out[i].Each, measure(i))
		}
	}
	for i := range out {
		var err error
		if out[i].Estimate, err = fit.Median(out[i].Each); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Once is one measurement, in nanoseconds, of something that is done n times at once:
// it takes least or longer.
func Once(least time.Duration, n int, do func()) float64 {
	do() // what comes first finds cold caches
	done, start := 0, time.Now()
	for done == 0 || time.Since(start) < least { // it may have been off its CPU since
		do()
		done += n
	}
	return float64(time.Since(start).Nanoseconds()) / float64(done)
}

// leastRepeat is how long one measurement takes at least: long against a tick of the
// clock and an interrupt.
const leastRepeat = 2 * time.Millisecond

// Time is the median of as many measurements as repeats says of something that is
// done n times at once.
func Time(ctx context.Context, repeats, n int, do func()) (*fit.Estimate, error) {
	out, err := Turns(ctx, repeats, 1, func(int) float64 { return Once(leastRepeat, n, do) })
	if err != nil {
		return nil, err
	}
	return &out[0].Estimate, nil
}
