// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/records"
)

// sink keeps results alive.
var sink int

// benchGroups is into how many groups benchmarks split their batches.
const benchGroups = 7

// kernelLike is an ascending batch with the mean distance of real records.
func kernelLike(n int) Batch {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	b := Batch{Addrs: make([]records.Addr, n)}
	at := records.Addr(0xffffffff81000000)
	for i := range b.Addrs {
		b.Addrs[i] = at
		at += records.Addr(16 * (1 + rng.IntN(8)))
	}
	for g := 1; g < benchGroups && g < n; g++ {
		b.Starts = append(b.Starts, g*n/benchGroups)
	}
	return b
}

// randomKeys are addresses of a batch in random order, so many that no branch
// predictor learns the sequence, as none learns which site traps next.
func randomKeys(b Batch) []records.Addr {
	rng := rand.New(rand.NewPCG(2, 0))
	keys := make([]records.Addr, max(len(b.Addrs), 1<<17))
	for i := range keys {
		keys[i] = b.Addrs[rng.IntN(len(b.Addrs))]
	}
	return keys
}

func BenchmarkLookup(b *testing.B) {
	for k, name := range LookupNames() {
		for _, n := range []int{256, 45_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				batch := kernelLike(n)
				x := Build(Lookup(k), batch)
				keys := randomKeys(batch)
				var p cpus.Probe
				b.ReportAllocs()
				next, lookups := 0, 0
				comparisons := int64(0)
				for b.Loop() {
					slot, ok := x.Find(keys[next], &p)
					if !ok {
						b.Fatalf("%v: not found", keys[next])
					}
					sink = slot
					if next++; next == len(keys) {
						next = 0
					}
					lookups++
					comparisons += int64(p.Comparisons)
					p.Comparisons = 0
				}
				b.ReportMetric(float64(comparisons)/float64(lookups), "comparisons/op")
			})
		}
	}
}

// BenchmarkPublish builds an index and takes it through a table's life.
func BenchmarkPublish(b *testing.B) {
	for k, name := range LookupNames() {
		for _, n := range []int{256, 45_000} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				batch := kernelLike(n)
				acts := make([]isa.Insn, n)
				t := NewTable(PerCPU, 4)
				b.ReportAllocs()
				for b.Loop() {
					t.Publish(Build(Lookup(k), batch), acts)
					t.Unpublish()
					if !t.Drained() {
						b.Fatal("no handler is in, and the table is not drained")
					}
					t.Clear()
				}
			})
		}
	}
}
