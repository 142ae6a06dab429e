// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkTimed/hold is the hold model, by which event queues are compared (Jones,
// "An empirical comparison of priority-queue and event-set implementations", CACM
// 29(4), 1986): the earliest event is taken, and asked for again an exponential time
// later, while depth events wait.
func BenchmarkTimed(b *testing.B) {
	for _, depth := range []int{1, 64, 1000, 64000} {
		b.Run(fmt.Sprintf("hold/depth=%d", depth), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			var delay [4096]Nanos // drawn before: the queue is measured, not the law
			for i := range delay {
				delay[i] = Nanos(rng.ExpFloat64() * 1000 * float64(depth))
			}
			q := newQueue()
			for i := range depth {
				q.push(delay[i%len(delay)], uint32(i))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e, _ := q.pop()
				q.push(e.at+delay[i%len(delay)], e.what)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
