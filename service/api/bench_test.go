// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/textpoke/textpoke/service"
)

// BenchmarkWatched is how many updates 64 clients get in a second: alone; while another process reads 64 streams of events,
// and beside them opens a thousand a second and closes them; and, the control, while it does so to a server of this process
// that has nothing in common with the service and sends as many bytes. The three take turns. What the control loses is the
// price of the processor's time; what the watched lose beyond that is what streams cost updates otherwise.
func BenchmarkWatched(b *testing.B) {
	w := ready(b, func(_ *service.Config, c *Config) { c.Limits.Streams = 1 << 20 })
	w.handler.conns.most = 1 << 20
	var alone, watched, control turn
	for b.Loop() {
		alone.run(b, w, nil)
		watched.run(b, w, startWatchers(b, w.http.URL))
		other := plainServer(watched.bytes / watched.took.Seconds() / readers)
		control.run(b, w, startWatchers(b, other.URL))
		other.Close()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(alone.rate(), "updates/s")
	b.ReportMetric(watched.rate()/alone.rate(), "watched-of-alone")
	b.ReportMetric(control.rate()/alone.rate(), "control-of-alone")
	b.ReportMetric(alone.updates/alone.batches, "updates/batch")
	b.ReportMetric(watched.updates/watched.batches, "watched-updates/batch")
	b.ReportMetric(control.updates/control.batches, "control-updates/batch")
	b.ReportMetric(alone.used.Seconds()/alone.took.Seconds(), "cores")
	b.ReportMetric(watched.used.Seconds()/watched.took.Seconds(), "watched-cores")
	b.ReportMetric(control.used.Seconds()/control.took.Seconds(), "control-cores")
	b.ReportMetric(watched.watching.Seconds()/watched.took.Seconds(), "watchers-cores")
	b.ReportMetric(control.watching.Seconds()/control.took.Seconds(), "control-watchers-cores")
	b.ReportMetric(watched.opened/watched.took.Seconds(), "openings/s")
	b.ReportMetric(control.opened/control.took.Seconds(), "control-openings/s")
	b.ReportMetric(watched.bytes/watched.took.Seconds()/1e6, "MB/s")
	b.ReportMetric(control.bytes/control.took.Seconds()/1e6, "control-MB/s")
}

// BenchmarkOpened is the processor's time that this process takes for a stream of events that another process opens and
// closes, while nothing happens; and for one of a bare server.
func BenchmarkOpened(b *testing.B) {
	w := ready(b, func(_ *service.Config, c *Config) { c.Limits.Streams = 1 << 20 })
	w.handler.conns.most = 1 << 20
	plain := plainServer(0)
	defer plain.Close()
	spent := func(url string) (sum turn) {
		watching := startWatchers(b, url)
		before := processorTime()
		time.Sleep(time.Second)
		sum.used = processorTime() - before
		sum.opened = watching.end(b).Opened
		return sum
	}
	var all, control turn
	for b.Loop() {
		one, other := spent(w.http.URL), spent(plain.URL)
		all.used, all.opened = all.used+one.used, all.opened+one.opened
		control.used, control.opened = control.used+other.used, control.opened+other.opened
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(all.used.Seconds()/all.opened*1e6, "us/opening")
	b.ReportMetric(control.used.Seconds()/control.opened*1e6, "control-us/opening")
}

// turn adds up seconds of the same kind.
type turn struct {
	updates, opened, bytes float64
	batches                float64
	took, used, watching   time.Duration // by the clock, and of the processor: by this process and by watchers
}

func (t *turn) rate() float64 { return t.updates / t.took.Seconds() }

// run has 64 clients switch a record each for a second.
func (t *turn) run(b *testing.B, w *world, watching *watchers) {
	ctx, cancel := context.WithCancel(b.Context())
	var clients sync.WaitGroup
	var done atomic.Int64
	batches := w.service.Stats().Batches
	start, before := time.Now(), processorTime()
	for i := range 64 {
		clients.Go(func() {
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
	t.took += time.Since(start)
	t.used += processorTime() - before
	t.updates += float64(done.Load())
	t.batches += float64(w.service.Stats().Batches - batches)
	seen := watching.end(b)
	t.opened, t.bytes, t.watching = t.opened+seen.Opened, t.bytes+seen.Bytes, t.watching+seen.Used
	cancel()
	clients.Wait()
}

// processorTime is what this process has taken.
func processorTime() time.Duration {
	var now syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Utime.Nano() + now.Stime.Nano())
}

const (
	readers  = 64
	openings = 1000 // a second
)

// watchers is another process that watches.
type watchers struct {
	*exec.Cmd
	in  io.Closer
	out *bytes.Buffer
}

// seen is what it tells in the end.
type seen struct {
	Opened, Bytes float64 // streams besides the readers', and what these read
	Used          time.Duration
}

// startWatchers returns when the readers are there.
func startWatchers(b *testing.B, url string) *watchers {
	w := &watchers{Cmd: exec.Command(os.Args[0], "-watch", url), out: &bytes.Buffer{}}
	var err error
	if w.in, err = w.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	said, err := w.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	w.Stdout = w.out
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	if text, err := io.ReadAll(said); err != nil || len(text) > 0 {
		b.Fatalf("%s, %v", text, err)
	}
	return w
}

func (w *watchers) end(b *testing.B) (s seen) {
	if w == nil {
		return s
	}
	if err := cmp.Or(w.in.Close(), w.Wait()); err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(w.out.Bytes(), &s); err != nil {
		b.Fatalf("%s: %v", w.out, err)
	}
	return s
}

// watch is the other process. It closes its standard error when the readers are there, and ends with its standard input.
func watch(url string) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(ctx context.Context) (io.ReadCloser, error) {
		req, err := http.NewRequestWithContext(ctx, "GET", url+"/v1/events", nil)
		if err != nil {
			return nil, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	}
	var all sync.WaitGroup
	var opened, read atomic.Int64
	for range readers {
		body, err := get(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		all.Go(func() {
			for b := make([]byte, 1<<16); ; {
				n, err := body.Read(b)
				if read.Add(int64(n)); err != nil {
					return
				}
			}
		})
	}
	os.Stderr.Close()
	before := processorTime()
	all.Go(func() {
		tick := time.NewTicker(time.Second / openings * 5)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			for range 5 {
				all.Go(func() {
					one, stop := context.WithCancel(ctx)
					defer stop()
					if body, err := get(one); err == nil {
						opened.Add(1)
						body.Close()
					}
				})
			}
		}
	})
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = json.NewEncoder(os.Stdout).Encode(seen{float64(opened.Load()), float64(read.Load()), processorTime() - before})
	cancel()
	all.Wait()
}

// plainServer sends each reader so many bytes a second, in pieces of some 256 events.
func plainServer(rate float64) *httptest.Server {
	piece := bytes.Repeat([]byte("x"), 90_000)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		out := http.NewResponseController(w)
		for out.Flush() == nil {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Duration(float64(len(piece)) / max(rate, 1) * 1e9)):
			}
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
}
