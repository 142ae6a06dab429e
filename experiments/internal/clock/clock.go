// SPDX-License-Identifier: Apache-2.0

// Package clock times code that takes nanoseconds on this machine.
package clock

import (
	"context"
	"time"

	"github.com/textpoke/textpoke/results/fit"
)

// Turns takes so many measurements of each of n things, one thing after the other and
// then again: what disturbs the machine for a while disturbs all of them.
func Turns(ctx context.Context, repeats, n int, measure func(i int) float64) ([][]float64, error) {
	each := make([][]float64, n)
	for range repeats {
		for i := range each {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			each[i] = append(each[i], measure(i))
		}
	}
	return each, nil
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
// done n times at once. Nothing is assumed about how times spread.
func Time(ctx context.Context, repeats, n int, do func()) (*fit.Estimate, error) {
	each, err := Turns(ctx, repeats, 1, func(int) float64 { return Once(leastRepeat, n, do) })
	if err != nil {
		return nil, err
	}
	m, err := fit.Median(each[0])
	return &m, err
}
