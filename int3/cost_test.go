// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
)

// looked is what looking every address of a batch up really costs.
func looked(k Lookup, b Batch) Cost { return lookedIn(Build(k, b), b) }

func lookedIn(x Index, b Batch) Cost {
	cost := Cost{Hits: len(b.Addrs)}
	for _, at := range b.Addrs {
		var p cpus.Probe
		x.Find(at, &p)
		cost.Total += uint64(p.Comparisons)
		cost.Max = max(cost.Max, int(p.Comparisons))
	}
	return cost
}

// TestCostEveryN goes through every number of addresses up to two levels of btree nodes
// and a bit, once a btree of as many other addresses was measured.
func TestCostEveryN(t *testing.T) {
	to, step := 2100, 7
	if *long {
		to, step = 5000, 1
	}
	rng := rand.New(rand.NewPCG(1, 0))
	measured, b := ascending(rng, to), ascending(rng, to)
	for n := range to + 1 {
		part := Batch{Addrs: b.Addrs[:n]}
		if got, want := CostOf(Vector, part), looked(Vector, part); got != want {
			t.Fatalf("vector of %d: %+v, measured %+v", n, got, want)
		}
		if n%step != 0 {
			continue
		}
		CostOf(BTree, Batch{Addrs: measured.Addrs[:n]})
		if got, want := CostOf(BTree, part), looked(BTree, part); got != want {
			t.Fatalf("btree of %d: %+v, measured %+v", n, got, want)
		}
	}
}

// TestCostRandom asks, twice, about batches that are in order,
// partly, or not at all.
func TestCostRandom(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rng := drawRand(t)
				b := ascending(rng, rapid.IntRange(0, 600).Draw(t, "n"))
				switch rapid.SampledFrom([]string{"ascending", "groups", "random"}).Draw(t, "order") {
				case "groups":
					b = shuffledGroups(rng, b)
				case "random":
					b = shuffled(rng, b)
				}
				want := looked(k, b)
				for range 2 {
					if got := CostOf(k, b); got != want {
						t.Fatalf("%d addresses, groups at %v: %+v, measured %+v", len(b.Addrs), b.Starts, got, want)
					}
				}
			})
		})
	}
}

func TestCostOfMany(t *testing.T) {
	ns := []int{45_000, 65_535, 65_536, 100_000}
	if *long {
		ns = append(ns, 1_000_000, 3_000_000)
	}
	for _, n := range ns {
		b := kernelLike(n)
		for _, k := range kinds() {
			if got, want := CostOf(k, b), looked(k, b); got != want {
				t.Errorf("%v of %d: %+v, measured %+v", k, n, got, want)
			}
		}
	}
}

// TestCostOfFullTree: a binary search over 2^k-1 addresses is a full tree, with
// 2^d addresses at depth d: (k-1)*2^k + 1 comparisons for all of them.
func TestCostOfFullTree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for k := 1; k <= 16; k++ {
		n := 1<<k - 1
		want := Cost{Hits: n, Total: uint64((k-1)<<k + 1), Max: k}
		b := ascending(rng, n)
		if got := CostOf(Vector, b); got != want {
			t.Errorf("vector of %d: %+v, want %+v", n, got, want)
		}
		// As one group: two comparisons more find that it is the one.
		want.Total += uint64(2 * n)
		want.Max += 2
		if got := CostOf(Groups, Batch{Addrs: b.Addrs}); got != want {
			t.Errorf("one group of %d: %+v, want %+v", n, got, want)
		}
	}
}

// TestCostBounds: no kind needs fewer comparisons than a full tree over all
// addresses would, but for a hash, and a vector needs no more than its depth.
func TestCostBounds(t *testing.T) {
	for n := 1; n < 3000; n += 7 {
		b := kernelLike(n)
		vector, btree := CostOf(Vector, b), CostOf(BTree, b)
		if want := bits.Len(uint(n)); vector.Max != want {
			t.Errorf("vector of %d: at most %d, want %d", n, vector.Max, want)
		}
		if btree.Total < vector.Total {
			t.Errorf("btree of %d: %d comparisons, fewer than the %d of a vector", n, btree.Total, vector.Total)
		}
		if hash := CostOf(Hash, b); hash.Total < uint64(n) {
			t.Errorf("hash of %d: %d comparisons", n, hash.Total)
		}
	}
}

func TestCostAddsUp(t *testing.T) {
	var sum Cost
	for _, c := range []Cost{{2, 7, 4}, {}, {1, 9, 9}, {5, 5, 1}} {
		sum.Add(c)
	}
	if want := (Cost{Hits: 8, Total: 21, Max: 9}); sum != want {
		t.Errorf("%+v, want %+v", sum, want)
	}
	if sum.Mean() != 21.0/8 {
		t.Errorf("mean %v, want %v", sum.Mean(), 21.0/8)
	}
}

// TestCostLeavesTheBatch: what is asked about is the caller's buffer.
func TestCostLeavesTheBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	for _, k := range kinds() {
		b := shuffledGroups(rng, ascending(rng, 500))
		same := slices.Clone(b.Addrs)
		CostOf(k, b)
		if !slices.Equal(b.Addrs, same) {
			t.Errorf("%v: the batch was written", k)
		}
	}
}
