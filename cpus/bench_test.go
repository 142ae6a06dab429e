// SPDX-License-Identifier: Apache-2.0

package cpus

import (
	"fmt"
	"testing"
	"unsafe"
)

// benchSites is about as many sites as a kernel has.
const benchSites = 45000

// BenchmarkStep executes calls of disabled sites with nothing being patched. An
// instruction takes two steps: one looks for interrupts, one executes. The limit is
// memory: hot sites are spread over the table, so that a call takes two misses of the
// first-level cache that do not wait for each other, half a line of the site's text and
// its address. All sites together are 1.8 MB: what a core's second-level cache of one or
// two MiB holds for the most part.
func BenchmarkStep(b *testing.B) {
	for _, arch := range archNames {
		b.Run(arch, func(b *testing.B) {
			f := newFixture(b, arch, benchSites, busy(1), noHandler{}, Weak)
			c, pad, ch := CPU{Synced: 1}, NewScratchpad(), NewRandom(1, 1)
			ch.busy = &f.inFlight
			f.steps(&c, ch, pad, 10*benchSites) // bring the table into the caches
			pad.begun = 0
			b.ReportAllocs()
			for b.Loop() {
				Step(&c, f.code, f.Machine, ch, pad)
				Step(&c, f.code, f.Machine, ch, pad)
			}
			b.ReportMetric(float64(pad.begun)/b.Elapsed().Seconds()/1e6, "Minsn/s")
			b.ReportMetric(float64(unsafe.Sizeof(siteText{})+unsafe.Sizeof(f.code.Sites[0])), "bytes/site")
		})
	}
}

// BenchmarkRound sends rounds to busy CPUs. The cost per target should not
// depend on their number.
func BenchmarkRound(b *testing.B) {
	for _, cpus := range []int{2, 8, 64, 256} {
		b.Run(fmt.Sprintf("cpus=%d", cpus), func(b *testing.B) {
			f := started(b, "x86_64", benchSites, busy(cpus))
			l := occupy(b, f.Machine, 0)
			b.ReportAllocs()
			for b.Loop() {
				f.Sender(0).Send(0, Sync, false)
				f.Sender(0).Wait(l)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(cpus-1)), "ns/target")
			l.Release()
		})
	}
}
