// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// BenchmarkWatched is how many updates 64 clients get in a second while 64 streams of events are read and, beside them, a
// thousand are opened a second and closed after their first piece; and how many without, turn by turn in the same run. On
// a machine that has no cores to spare the processor's time says more: watchers-cores is what both ends of the streams
// take of it, beyond what as many updates take without them.
func BenchmarkWatched(b *testing.B) {
	w := ready(b, func(_ *service.Config, c *Config) { c.Limits.Streams = 1 << 20 })
	w.client.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
	defer w.client.CloseIdleConnections()
	w.http.Config.ConnContext = nil
	var updates, opened [2]float64
	var took, used [2]time.Duration
	for b.Loop() {
		for watched := range 2 {
			ctx, cancel := context.WithCancel(b.Context())
			var all sync.WaitGroup
			var done, opens atomic.Int64
			if watched == 1 {
				w.watch(ctx, &all, &opens)
			}
			start, before := time.Now(), processorTime(b)
			for i := range 64 {
				all.Go(func() {
					for on := true; ctx.Err() == nil; on = !on {
						r := service.Request{Client: fmt.Sprint("c", i), Ops: "o", Enable: on, Records: []string{fmt.Sprint("fn", i)}, Waits: true}
						u, err := w.service.Submit(b.Context(), r)
						if err == nil {
							_, err = w.service.Wait(b.Context(), u.ID)
						}
						if err != nil {
							b.Error(err)
							return
						}
						done.Add(1)
					}
				})
			}
			time.Sleep(time.Second)
			took[watched] += time.Since(start)
			used[watched] += processorTime(b) - before
			updates[watched] += float64(done.Load())
			opened[watched] += float64(opens.Load())
			cancel()
			all.Wait()
		}
	}
	without, with := updates[0]/took[0].Seconds(), updates[1]/took[1].Seconds()
	b.ReportMetric(without, "updates/s")
	b.ReportMetric(with, "watched-updates/s")
	b.ReportMetric(with/without, "of-unwatched")
	b.ReportMetric((used[1].Seconds()-used[0].Seconds()*updates[1]/updates[0])/took[1].Seconds(), "watchers-cores")
	b.ReportMetric(opened[1]/took[1].Seconds(), "openings/s")
}

// processorTime is what this process has taken.
func processorTime(b *testing.B) time.Duration {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		b.Fatal(err)
	}
	return time.Duration(now.Utime.Nano() + now.Stime.Nano())
}

// watch reads 64 streams to their ends, and opens a thousand a second, until ctx ends.
func (w *world) watch(ctx context.Context, all *sync.WaitGroup, opens *atomic.Int64) {
	get := func(ctx context.Context, read func(io.Reader)) {
		req, err := http.NewRequestWithContext(ctx, "GET", w.http.URL+"/v1/events", nil)
		if err != nil {
			w.t.Error(err)
			return
		}
		resp, err := w.client.Do(req)
		if err != nil { // it is over
			return
		}
		read(resp.Body)
		resp.Body.Close()
	}
	for range 64 {
		all.Go(func() { get(ctx, func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }) })
	}
	for range 10 {
		all.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					opens.Add(1)
					one, stop := context.WithCancel(ctx)
					get(one, func(r io.Reader) { _, _ = r.Read(make([]byte, 4096)) })
					stop()
				}
			}
		})
	}
}
