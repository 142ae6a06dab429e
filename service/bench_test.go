// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/textpoke/textpoke/service"
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

// BenchmarkLinger is what waiting for company brings, by how long an update waits at most:
// rounds over those that it takes when all clients share every update, and updates a
// second. An operation is one update of each client.
func BenchmarkLinger(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 512} {
		for _, times := range []float64{-1, 1, 2, 4, 8} { // -1: none
			b.Run(fmt.Sprintf("clients=%d/f=%v", clients, max(times, 0)), func(b *testing.B) {
				m := started(b, setup{dir: b.TempDir(), records: "gen:n=4096", cpus: "busy=3,idle=1", buffer: "dynamic",
					linger: times})
				l := load{machine: m, on: make([]bool, clients)}
				l.run(b, 2*clients) // until it is known how many there are
				b.ResetTimer()
				done := l.run(b, clients*b.N)
				b.ReportMetric(done.rounds*float64(clients)/3, "times-ideal")
				b.ReportMetric(done.perSecond, "updates/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkSubmit is how long so many clients wait until an update is durably accepted and
// until it is live, how many are a second, each of them live before its client asks for
// the next, and what an update costs the disk: transactions, each of which is a sync, and
// bytes written. In the same run, turn by turn, is what two syncs of a page take on this disk: of-two-syncs is how
// many updates there are for each of those, by the mean, and p50-of-two-syncs the median of the one in that of the other.
func BenchmarkSubmit(b *testing.B) {
	for _, clients := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			var commits atomic.Int64
			m := started(b, setup{dir: b.TempDir(), records: "gen:n=4096", cpus: "busy=8", buffer: "dynamic",
				observer: service.Observer{Written: func(time.Duration) { commits.Add(1) }}})
			accepted, live := hdrhistogram.New(1, int64(time.Minute), 3), hdrhistogram.New(1, int64(time.Minute), 3)
			commits.Store(0)
			pair := hdrhistogram.New(1, int64(time.Minute), 3)
			bytes, seconds, done := int64(0), 0.0, 0
			for n := max(b.N/turns, 1); done < b.N; done += n {
				before := written(b)
				rate := load{machine: m, on: make([]bool, clients), took: accepted, lived: live}.run(b, n).perSecond
				bytes += written(b) - before
				seconds += float64(n) / rate
				twoSyncs(b, pair)
			}
			b.ReportMetric(float64(bytes)/float64(done), "disk-bytes/op")
			b.ReportMetric(float64(commits.Load())/float64(done), "syncs/op")
			b.ReportMetric(float64(done)/seconds, "updates/s")
			b.ReportMetric(float64(done)/seconds*pair.Mean()/1e9, "of-two-syncs")
			b.ReportMetric(float64(live.ValueAtQuantile(50))/float64(pair.ValueAtQuantile(50)), "p50-of-two-syncs")
			for _, q := range []float64{50, 99} {
				b.ReportMetric(float64(accepted.ValueAtQuantile(q))/1e6, fmt.Sprintf("accept-p%v-ms", q))
				b.ReportMetric(float64(live.ValueAtQuantile(q))/1e6, fmt.Sprintf("live-p%v-ms", q))
			}
			b.ReportMetric(float64(pair.ValueAtQuantile(50))/1e6, "two-syncs-p50-ms")
		})
	}
}

// written is how many bytes this process has had written to disks (proc(5), write_bytes).
func written(b *testing.B) (n int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("/proc does not say what is written")
	}
	_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// turns is how often a benchmark goes from updates to syncs and back.
const turns = 20

// twoSyncs records the times of writing a page of a file and syncing it as the journal does, twice. The file has its length
// before, so that nothing but the page gets on the disk: no sync takes less.
func twoSyncs(b *testing.B, h *hdrhistogram.Histogram) {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "sync"))
	page := make([]byte, 4096)
	if err == nil {
		_, err = f.Write(page)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for range 25 {
		start := time.Now()
		for range 2 {
			_, err := f.WriteAt(page, 0)
			if err == nil {
				err = syncData(f)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		if err := h.RecordValue(int64(time.Since(start))); err != nil {
			b.Fatal(err)
		}
	}
}

// load is clients that switch their own records on and off, as fast as they are
// answered.
type load struct {
	machine *machine
	on      []bool                  // of each client, whether its records are enabled
	mutex   *sync.Mutex             // where set, each holds it from asking until it is live
	took    *hdrhistogram.Histogram // where set, how long until an update is accepted, in ns
	lived   *hdrhistogram.Histogram // where set, how long until it is live, in ns
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
			own, ended := hdrhistogram.New(1, int64(time.Minute), 3), hdrhistogram.New(1, int64(time.Minute), 3)
			mine := all[i*len(all)/len(l.on):][:recordsEach]
			for left.Add(-1) >= 0 {
				l.on[i] = !l.on[i]
				if err := l.one(tb.Context(), fmt.Sprintf("client%d", i), mine, l.on[i], own, ended); err != nil {
					tb.Error(err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if l.took != nil {
				l.took.Merge(own)
			}
			if l.lived != nil {
				l.lived.Merge(ended)
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
	took, lived *hdrhistogram.Histogram) error {
	if l.mutex != nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
	}
	start := time.Now()
	r := request(client, records, enable)
	r.Waits = true
	u, err := l.machine.Submit(ctx, r)
	if err != nil {
		return err
	}
	if err := took.RecordValue(int64(time.Since(start))); err != nil {
		return err
	}
	u, err = l.machine.Wait(ctx, u.ID)
	if err == nil {
		err = lived.RecordValue(int64(time.Since(start)))
	}
	if err == nil && u.State != "live" {
		err = fmt.Errorf("update %d is %s: %s", u.ID, u.State, u.Error)
	}
	return err
}
