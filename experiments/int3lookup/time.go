package int3lookup

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/records"
)

// minRepeats is how many measurements an interval of their median needs.
const minRepeats = 6

func (r *request) check() error {
	if !r.noTime && r.repeats < minRepeats {
		return fmt.Errorf("--repeats %d: want %d or more: fewer measurements bound no median with 95 %% confidence", r.repeats, minRepeats)
	}
	return nil
}

// timing is how long one lookup takes, in nanoseconds.
type timing struct {
	median, low, high float64
	repeats           int
}

const (
	// keysPerRepeat is so many that no branch predictor learns them, as none
	// learns which site traps next.
	keysPerRepeat = 1 << 15
	// leastRepeat is how long one measurement takes at least: long against a
	// tick of the clock and an interrupt.
	leastRepeat = 2 * time.Millisecond
)

// timeFinds times lookups of addresses in random order.
func timeFinds(ctx context.Context, x int3.Index, addrs []records.Addr, repeats int, seed uint64) (timing, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(len(addrs))))
	keys := make([]records.Addr, keysPerRepeat)
	for i := range keys {
		keys[i] = addrs[rng.IntN(len(addrs))]
	}
	lookAll(x, keys) // what comes first finds cold caches
	var each []float64
	for range repeats {
		if err := ctx.Err(); err != nil {
			return timing{}, err
		}
		finds, start := 0, time.Now()
		for time.Since(start) < leastRepeat {
			lookAll(x, keys)
			finds += len(keys)
		}
		each = append(each, float64(time.Since(start).Nanoseconds())/float64(finds))
	}
	// Nothing is assumed about how times spread: the median, and an interval from
	// order statistics.
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(each, &benchmath.DefaultThresholds), 0.95)
	return timing{s.Center, s.Lo, s.Hi, repeats}, nil
}

// lookAll looks every key up. Nothing is done with the answers: what is called
// through an interface is called all the same.
func lookAll(x int3.Index, keys []records.Addr) {
	var p cpus.Probe
	for _, at := range keys {
		x.Find(at, &p)
	}
}
