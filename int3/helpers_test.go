// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

var long = flag.Bool("long", false, "run slow tests")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kinds are all kinds.
func kinds() []Lookup {
	var all []Lookup
	for k := range LookupNames() {
		all = append(all, Lookup(k))
	}
	return all
}

// ascending is a batch of n addresses, with random starts of groups.
func ascending(rng *rand.Rand, n int) Batch {
	b := Batch{Addrs: make([]records.Addr, n)}
	at := records.Addr(1 + rng.Uint64N(1<<63))
	for i := range b.Addrs {
		b.Addrs[i] = at
		at += records.Addr(1 + rng.IntN(40))
	}
	sparse := 1 + rng.IntN(n+1) // mean length of a group
	for i := 1; i < n; i++ {
		if rng.IntN(sparse) == 0 {
			b.Starts = append(b.Starts, i)
		}
	}
	return b
}

// shuffledGroups puts the groups of a batch in any order.
func shuffledGroups(rng *rand.Rand, b Batch) Batch {
	if len(b.Addrs) == 0 {
		return b
	}
	var groups [][]records.Addr
	ends := append(slices.Clone(b.Starts), len(b.Addrs))
	first := 0
	for _, end := range ends {
		groups = append(groups, b.Addrs[first:end])
		first = end
	}
	rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	var out Batch
	for _, g := range groups {
		if len(out.Addrs) > 0 {
			out.Starts = append(out.Starts, len(out.Addrs))
		}
		out.Addrs = append(out.Addrs, g...)
	}
	return out
}

// shuffled puts the addresses of a batch in any order.
func shuffled(rng *rand.Rand, b Batch) Batch {
	out := slices.Clone(b.Addrs)
	rng.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return Batch{Addrs: out}
}

// arranged is a batch in the wildest order that a kind answers for.
func arranged(rng *rand.Rand, k Lookup, b Batch) Batch {
	switch k {
	case Vector:
		return b
	case Groups:
		return shuffledGroups(rng, b)
	default:
		return shuffled(rng, b)
	}
}

// drawRand is randomness that rapid can repeat.
func drawRand(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
}

func checkIndex(t rapid.TB, x Index, addrs []records.Addr) {
	t.Helper()
	if err := wrong(x, addrs); err != nil {
		t.Fatal(err)
	}
}

// wrong holds an index against a map: each address has its slot, and what is
// near one, or far from all, is missed.
func wrong(x Index, addrs []records.Addr) error {
	slots := make(map[records.Addr]int, len(addrs))
	for slot, at := range addrs {
		slots[at] = slot
	}
	keys := []records.Addr{0, ^records.Addr(0)}
	for _, at := range addrs {
		keys = append(keys, at, at-1, at+1)
	}
	var p cpus.Probe
	for _, at := range keys {
		want, there := slots[at]
		if slot, ok := x.Find(at, &p); ok != there || slot != want {
			return fmt.Errorf("%v: slot %d, found %t, want %d, %t", at, slot, ok, want, there)
		}
	}
	return nil
}
