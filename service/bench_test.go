// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// BenchmarkCoalesce is what an update costs when so many clients want something at
// the same time: rounds, with the coordinator and, in the same run, as in a kernel,
// where text_mutex makes each wait and pay for its own (kernel/trace/ftrace.c,
// ftrace_lock; arch/x86/kernel/alternative.c, text_mutex; Linux 6.12).
func BenchmarkCoalesce(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			m := started(b, setup{dir: b.TempDir(), records: "gen:n=4096", cpus: "busy=3,idle=1", buffer: "dynamic"})
			l := load{machine: m, on: make([]bool, clients)}
			together := l.run(b, b.N)
			b.StopTimer()
			l.mutex = new(sync.Mutex)
			alone := l.run(b, min(b.N, 1000))
			b.ReportMetric(together.rounds, "rounds/op")
			b.ReportMetric(together.perSecond, "op/s")
			b.ReportMetric(alone.rounds, "alone-rounds/op")
			b.ReportMetric(alone.perSecond, "alone-op/s")
			b.ReportMetric(alone.rounds/together.rounds, "fewer-rounds")
			b.ReportMetric(together.perSecond/alone.perSecond, "faster")
		})
	}
}

// BenchmarkSubmit is how long 64 clients wait until an update is durably accepted,
// and how many are a second, each of them live before its client asks for the next.
func BenchmarkSubmit(b *testing.B) {
	m := started(b, setup{dir: b.TempDir(), records: "gen:n=4096", cpus: "busy=1,idle=1", buffer: "dynamic"})
	took := hdrhistogram.New(1, int64(time.Minute), 3)
	done := load{machine: m, on: make([]bool, 64), took: took}.run(b, b.N)
	b.ReportMetric(done.perSecond, "updates/s")
	for _, q := range []float64{50, 99, 99.9} {
		b.ReportMetric(float64(took.ValueAtQuantile(q))/1e6, fmt.Sprintf("p%v-ms", q))
	}
}

// load is clients that switch their own records on and off, as fast as they are
// answered.
type load struct {
	machine *machine
	on      []bool                  // of each client, whether its records are enabled
	mutex   *sync.Mutex             // where set, each holds it from asking until it is live
	took    *hdrhistogram.Histogram // where set, how long until an update is accepted, in ns
}

// cost is what a load came to, for each update.
type cost struct{ rounds, perSecond float64 }

func (l load) run(tb testing.TB, updates int) cost {
	tb.Helper()
	all, err := l.machine.names()
	if err != nil {
		tb.Fatal(err)
	}
	var left atomic.Int64
	left.Store(int64(updates))
	var clients sync.WaitGroup
	var mu sync.Mutex
	before, start := l.machine.rounds(), time.Now()
	for i := range l.on {
		clients.Go(func() {
			own := hdrhistogram.New(1, int64(time.Minute), 3)
			mine := all[i*len(all)/len(l.on):][:recordsEach]
			for left.Add(-1) >= 0 {
				l.on[i] = !l.on[i]
				if err := l.one(tb.Context(), fmt.Sprintf("client%d", i), mine, l.on[i], own); err != nil {
					tb.Error(err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if l.took != nil {
				l.took.Merge(own)
			}
		})
	}
	clients.Wait()
	seconds := time.Since(start).Seconds()
	return cost{float64(l.machine.rounds()-before) / float64(updates), float64(updates) / seconds}
}

// recordsEach is how many records a client of a load switches.
const recordsEach = 4

func (l load) one(ctx context.Context, client string, records []string, enable bool,
	took *hdrhistogram.Histogram) error {
	if l.mutex != nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
	}
	start := time.Now()
	u, err := l.machine.Submit(ctx, request(client, records, enable))
	if err != nil {
		return err
	}
	if err := took.RecordValue(int64(time.Since(start))); err != nil {
		return err
	}
	u, err = l.machine.Wait(ctx, u.ID)
	if err == nil && u.State != "live" {
		err = fmt.Errorf("update %d is %s: %s", u.ID, u.State, u.Error)
	}
	return err
}
