// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/textpoke/textpoke/records"
)

const (
	benchKeys = 1 << 17 // so many that no branch predictor learns their order
	// A function is called so often before the next one is, and so many are in turn.
	hotCalls, hotFunctions = 1 << 12, benchKeys >> 12
)

// keys are the functions that are called: in random order, or each for a while.
func keys(n int, hot bool) []records.Addr {
	rng := rand.New(rand.NewPCG(2, uint64(n)))
	out := make([]records.Addr, benchKeys)
	for i := range out {
		if hot && i%hotCalls != 0 {
			out[i] = out[i-1]
			continue
		}
		out[i] = at(rng.IntN(n))
	}
	return out
}

// recordBytes is what the allocator takes for a record.
const recordBytes = 48

// heap is the memory that is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// chunk is how many lookups are timed together: long against a look at the clock,
// and short against what else the machine does.
const chunk = hotCalls

// sink keeps results alive.
var sink int

func lookAll(tab Table, calls []records.Addr) time.Duration {
	start := time.Now()
	for _, a := range calls {
		sink += int(tab.Lookup(a).Args)
	}
	return time.Since(start)
}

// ofOne is the time of lookups in a table over that in one of the same kind with a
// single entry. The two take turns, and the ratio is the median of the turns': what
// disturbs one disturbs the other.
func ofOne(tab, one Table, calls []records.Addr) float64 {
	single := keys(1, true)
	var ratios []float64
	for range 3 {
		for part := range slices.Chunk(calls, chunk) {
			lookAll(tab, part[:chunk/8]) // the other one has been in the caches
			long := lookAll(tab, part)
			lookAll(one, single[:chunk/8])
			ratios = append(ratios, float64(long)/float64(lookAll(one, single[:chunk])))
		}
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// BenchmarkMetadata looks functions up in every table. Hot is what the published
// bench does: all are hooked, one is called. Random is all called in random order,
// which finds the table's lines, and the records', in whatever cache they fit.
// x-of-one is the time over that with one entry, and bytes/function what the
// table takes, without the records (and without the text, of padding).
//
// A resizable table is to be within a fifth of its time with one entry at 50,000.
// Hot it is (TestHotIsFlat). In random order it cannot be: a lookup touches 2.06 lines
// that the one before did not, a cell's and the record's, of 2 MiB and 2.4 MB, and with
// one entry none.
func BenchmarkMetadata(b *testing.B) {
	for k, name := range KindNames() {
		one := filled(b, TableKind(k), 1)
		for _, n := range []int{1, 64, 1024, 16384, 50_000, 65_536} {
			before := heap()
			tab := filled(b, TableKind(k), n)
			bytes := heap() - before - int64(n*recordBytes)
			if c, ok := tab.(Counted); ok {
				bytes = int64(c.Bytes())
			}
			for _, pattern := range []string{"hot", "random"} {
				b.Run(fmt.Sprintf("%s/n=%d/%s", name, n, pattern), func(b *testing.B) {
					calls := keys(n, pattern == "hot")
					ratio := ofOne(tab, one, calls)
					b.ReportAllocs()
					next := 0
					for b.Loop() {
						sink += int(tab.Lookup(calls[next]).Args)
						next = (next + 1) % benchKeys
					}
					b.ReportMetric(ratio, "x-of-one")
					b.ReportMetric(float64(bytes)/float64(n), "bytes/function")
				})
			}
		}
	}
}

// TestHotIsFlat: with 50,000 functions hooked, the one that is called is found in the
// time that it takes when it is the only one, and a fifth.
func TestHotIsFlat(t *testing.T) {
	if !*long {
		t.Skip("times a table: -long")
	}
	for _, k := range []TableKind{ResizableHash, FunctionPadding} {
		if x := ofOne(filled(t, k, 50_000), filled(t, k, 1), keys(50_000, true)); x > 1.2 {
			t.Errorf("%v: %.2f of the time with one entry", k, x)
		}
	}
	if x := ofOne(filled(t, Fixed256, 50_000), filled(t, Fixed256, 1), keys(50_000, true)); x < 2 {
		t.Errorf("chains of 195 take %.2f of the time of one: nothing is measured", x)
	}
}
