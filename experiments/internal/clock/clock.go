// SPDX-License-Identifier: Apache-2.0

// Package clock times what takes nanoseconds on this machine.
package clock

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/textpoke/textpoke/results"
)

// Timing is how long something takes, in nanoseconds: the median of measurements, and
// the interval that holds it with 95 % confidence.
type Timing struct {
	Median, Low, High float64
	Repeats           int
}

// Interval prints the interval.
func (t Timing) Interval() string { return fmt.Sprintf("%.1f to %.1f", t.Low, t.High) }

// leastRepeat is how long one measurement takes at least: long against a tick of the
// clock and an interrupt.
const leastRepeat = 2 * time.Millisecond

// Time takes as many measurements as repeats says of something that is done n times
// at once. Nothing is assumed about how times spread.
func Time(ctx context.Context, repeats, n int, do func()) (*Timing, error) {
	do() // what comes first finds cold caches
	var each []float64
	for range repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		done, start := 0, time.Now()
		for time.Since(start) < leastRepeat {
			do()
			done += n
		}
		each = append(each, float64(time.Since(start).Nanoseconds())/float64(done))
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(each, &benchmath.DefaultThresholds), 0.95)
	return &Timing{s.Center, s.Lo, s.Hi, repeats}, nil
}

// Columns are those of the timings of rows, nil where there is none; doc says what is
// timed, and many what each measurement is of.
func Columns[R any](name, doc, many string, of func(R) *Timing) results.Columns[R] {
	return results.Of(results.Columns[*Timing]{
		{Name: name + "_ns", Doc: doc + " on this machine, median of the measurements",
			Cell: func(t *Timing) any { return t.Median }},
		{Name: name + "_low_ns", Doc: "lower end of the interval that holds the median with 95 % confidence",
			Cell: func(t *Timing) any { return t.Low }},
		{Name: name + "_high_ns", Doc: "and its upper end", Cell: func(t *Timing) any { return t.High }},
		{Name: "repeats", Detail: true, Doc: "measurements; each is of " + many,
			Cell: func(t *Timing) any { return t.Repeats }},
	}.When(func(t *Timing) bool { return t != nil }), of)
}
