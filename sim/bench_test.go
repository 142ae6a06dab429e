package sim

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/textpoke/textpoke/sched"
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
