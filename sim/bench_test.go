// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/textpoke/textpoke/kernels/calibration"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim/timed"
)

// BenchmarkPlanCount counts what ten million generated records would cost.
func BenchmarkPlanCount(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, buffer := range []sched.Buffer{{Slots: 256}, sched.Dynamic} {
			b.Run(fmt.Sprintf("records=%d/buffer=%s", n, buffer), func(b *testing.B) {
				b.ReportAllocs()
				var peak uint64
				for b.Loop() {
					// Generating is part of it: a user waits for both.
					c := config(b, "x86_64", "native", fmt.Sprintf("gen:n=%d,groups=7", n), "8")
					c.Buffer = buffer
					if _, err := newJob(b, c).Count(b.Context()); err != nil {
						b.Fatal(err)
					}
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					peak = max(peak, m.Sys)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
				b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
			})
		}
	}
}

// BenchmarkEnable is one update of 45,000 records under 8 CPUs that call them.
func BenchmarkEnable(b *testing.B) {
	for _, buffer := range []sched.Buffer{{Slots: 256}, sched.Dynamic} {
		b.Run(fmt.Sprintf("records=45000/cpus=8/buffer=%s", buffer), func(b *testing.B) {
			c := config(b, "x86_64", "native", "gen:n=45000,groups=3,order=sorted", "8")
			c.Buffer = buffer
			l := newLive(b, newJob(b, c))
			b.ReportAllocs()
			enable := false
			var first, last runtime.MemStats
			for i := 0; b.Loop(); i++ {
				enable = !enable
				update(b, l, enable)
				if i == 3 { // to and fro, twice
					runtime.GC()
					runtime.ReadMemStats(&first)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&last)
			b.ReportMetric(float64(last.HeapAlloc)/(1<<20), "MiB-live")
			if first.HeapAlloc > 0 {
				b.ReportMetric((float64(last.HeapAlloc)-float64(first.HeapAlloc))/(1<<20), "MiB-grown")
			}
			b.ReportMetric(float64(last.Sys)/(1<<20), "MiB-sys")
		})
	}
}

// BenchmarkTimed is one update of 50,000 records on many CPUs of the timed engine: of
// plain costs, where each makes 10,000 calls a second, and of the largest machine that
// there is a calibration of, where each makes 104,000.
func BenchmarkTimed(b *testing.B) {
	large, err := calibration.Open("refcount-480")
	if err != nil {
		b.Fatal(err)
	}
	plain := plainCosts()
	plain.Calls = 10_000
	for _, costs := range []struct {
		name string
		calibration.Costs
	}{{"plain", plain}, {large.Name, large.Costs}} {
		for _, buffer := range []sched.Buffer{{Slots: 256}, sched.Dynamic} {
			for _, n := range []int{256, 1024, 4096} {
				b.Run(fmt.Sprintf("%s/cpus=%d/records=50000/buffer=%s", costs.name, n, buffer), func(b *testing.B) {
					c := timedConfig(b, "x86_64", "native", "gen:n=50000,groups=3,order=sorted", fmt.Sprint(n), costs.Costs)
					c.Buffer = buffer
					benchmarkUpdate(b, c)
				})
			}
		}
	}
}

// benchmarkUpdate is an update on the timed engine, with the building of its machine.
// Its rate is by the process's own time: others may use the machine, too.
func benchmarkUpdate(b *testing.B, c Config) {
	var row RunRow
	var peak uint64
	b.ReportAllocs()
	before := userSeconds(b)
	for b.Loop() {
		m := newTimedFor(b, c, timed.HotOnly)
		var err error
		if row, err = m.Update(b.Context(), true); err != nil {
			b.Fatal(err)
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		peak = max(peak, mem.Sys)
	}
	seconds := (userSeconds(b) - before) / float64(b.N)
	b.ReportMetric(float64(row.Modelled.Events)/seconds/1e6, "Mevents/cpu-s")
	b.ReportMetric(float64(row.Traps), "traps")
	b.ReportMetric(float64(peak)/(1<<20), "MiB-peak")
}

// userSeconds is the process's time outside of the kernel.
func userSeconds(b *testing.B) float64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return float64(use.Utime.Nano()) / 1e9
}

// BenchmarkTimedGrowth fits how the time of an update grows with CPUs x rounds: the
// exponent of a power law through machines and buffers of all sizes, 1 where it is
// linear. Nobody calls anything, and what the stores take, which is the time on one
// CPU, is taken off: what is left is rounds.
func BenchmarkTimedGrowth(b *testing.B) {
	update := func(cpus, slots int) (seconds float64, rounds int) {
		c := timedConfig(b, "x86_64", "native", "gen:n=50000,groups=3,order=sorted", fmt.Sprint(cpus), plainCosts())
		c.Buffer, c.Calls = sched.Buffer{Slots: slots}, new(float64)
		m := newTimedFor(b, c, timed.HotOnly)
		start := time.Now()
		row, err := m.Update(b.Context(), true)
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(start).Seconds(), row.Rounds
	}
	var size, took []float64
	for b.Loop() {
		for _, slots := range []int{64, 256} {
			alone, _ := update(1, slots)
			for _, n := range []int{512, 1024, 2048, 4096} {
				seconds, rounds := update(n, slots)
				size = append(size, math.Log(float64(n*rounds)))
				took = append(took, math.Log(seconds-alone))
			}
		}
	}
	_, exponent := stat.LinearRegression(size, took, nil, false)
	b.ReportMetric(exponent, "exponent")
}
