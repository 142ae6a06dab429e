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

// shift is the cost of the same lookups behind n more comparisons each.
func (c Cost) shift(n int) Cost {
	if c.Hits == 0 {
		return c
	}
	return Cost{c.Hits, c.Total + uint64(c.Hits*n), c.Max + n}
}

// Coster computes what it costs to look every address of a batch up once,
// exactly. Where a batch is ascending, as the kernel's rules cut it, all but a hash
// have a shape that follows from numbers alone: a search in a vector or in groups is
// followed without an index, and a btree is built and measured once for each number of
// addresses.
type Coster struct {
	kind Lookup
	runs map[int]Cost // binary search over n addresses
}

// NewCoster makes a Coster for one kind of index.
func NewCoster(k Lookup) *Coster {
	return &Coster{kind: k, runs: map[int]Cost{0: {}}}
}

// Of is the cost of a batch.
func (c *Coster) Of(b Batch) Cost {
	n := len(b.Addrs)
	switch {
	case c.kind == Hash || !slices.IsSorted(b.Addrs):
		return measure(Build(c.kind, b), b)
	case c.kind == Vector:
		return c.run(n)
	case c.kind == Groups:
		return c.groups(n, b.Starts)
	}
	return btreeCost(b)
}

// btreeCosts are what btrees that were filled in ascending order cost, by their number of
// addresses, on which alone their shape depends: sweeps ask for the same ones again and
// again.
var btreeCosts sync.Map // of int to Cost

func btreeCost(b Batch) Cost {
	if cost, ok := btreeCosts.Load(len(b.Addrs)); ok {
		return cost.(Cost)
	}
	cost := measure(newBTree(b), b)
	btreeCosts.Store(len(b.Addrs), cost)
	return cost
}

// run follows search: one comparison, then the same in one of the halves.
func (c *Coster) run(n int) Cost {
	if cost, ok := c.runs[n]; ok {
		return cost
	}
	cost := Cost{Hits: 1}
	cost.Add(c.run(n / 2))
	cost.Add(c.run(n - 1 - n/2))
	cost = cost.shift(1)
	c.runs[n] = cost
	return cost
}

// groups follows groups.Find in an ascending batch: two comparisons pass each
// group before the right one, and two find that it is the one.
func (c *Coster) groups(n int, starts []int) Cost {
	var total Cost
	first := 0
	for g := range len(starts) + 1 {
		end := n
		if g < len(starts) {
			end = starts[g]
		}
		total.Add(c.run(end - first).shift(2*g + 2))
		first = end
	}
	return total
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
