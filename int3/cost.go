// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"slices"
	"sync"

	"github.com/textpoke/textpoke/cpus"
)

// Cost is what lookups cost, in comparisons.
type Cost struct {
	Hits  int    // lookups, one for each address; in an unsorted vector some miss
	Total uint64 // comparisons of all of them
	Max   int    // comparisons of the dearest
}

// Mean is the mean number of comparisons of a hit.
func (c Cost) Mean() float64 { return float64(c.Total) / float64(c.Hits) }

// Add adds up the costs of two batches.
func (c *Cost) Add(d Cost) {
	c.Hits += d.Hits
	c.Total += d.Total
	c.Max = max(c.Max, d.Max)
}

// shape is what the cost of an ascending batch follows from: a vector, and a btree that was filled in ascending order,
// have a shape that depends on the number of addresses alone.
type shape struct {
	kind Lookup
	n    int
}

// costs are those that were measured: sweeps ask for the same ones again and again.
var costs sync.Map // of shape to Cost

// CostOf is what it costs to look every address of a batch up once in an index of a kind, exactly.
func CostOf(k Lookup, b Batch) Cost {
	if k != BTree && k != Vector || !slices.IsSorted(b.Addrs) {
		return measure(Build(k, b), b)
	}
	is := shape{k, len(b.Addrs)}
	if cost, ok := costs.Load(is); ok {
		return cost.(Cost)
	}
	cost := measure(Build(k, b), b)
	costs.Store(is, cost)
	return cost
}

// measure looks every address up.
func measure(x Index, b Batch) Cost {
	var cost Cost
	for _, at := range b.Addrs {
		var p cpus.Probe
		x.Find(at, &p)
		cost.Add(Cost{1, uint64(p.Comparisons), int(p.Comparisons)})
	}
	return cost
}
