package callopsalternatives

import (
	"context"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/textpoke/textpoke/tracers/dispatch"
)

const (
	// minRepeats is how many measurements an interval of their median needs.
	minRepeats = 6
	// callsAtOnce is between two looks at the clock, which take as long as some calls.
	callsAtOnce = 1 << 10
	// leastRepeat is how long one measurement takes at least: long against a tick of
	// the clock and an interrupt.
	leastRepeat = 2 * time.Millisecond
)

// timing is how long one call takes, in nanoseconds.
type timing struct {
	median, low, high float64
	repeats           int
}

// timeCalls times calls of the first site.
func timeCalls(ctx context.Context, w dispatch.Way, repeats int) (*timing, error) {
	task := &dispatch.Task{}
	call := func() {
		for range callsAtOnce {
			w.Call(0, task)
		}
	}
	call() // what comes first finds cold caches
	var each []float64
	for range repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		calls, start := 0, time.Now()
		for time.Since(start) < leastRepeat {
			call()
			calls += callsAtOnce
		}
		each = append(each, float64(time.Since(start).Nanoseconds())/float64(calls))
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(each, &benchmath.DefaultThresholds), 0.95)
	return &timing{s.Center, s.Lo, s.Hi, repeats}, nil
}
