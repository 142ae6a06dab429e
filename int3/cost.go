package int3

import (
	"slices"

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
// exactly. It builds no index where the batch is ascending, as the kernel's rules
// cut it: then all but a hash have a shape that follows from numbers alone.
type Coster struct {
	kind   Kind
	runs   map[int]Cost // binary search over n addresses
	btrees map[int]Cost // btree of n addresses
}

// NewCoster makes a Coster for one kind of index.
func NewCoster(k Kind) *Coster {
	return &Coster{kind: k, runs: map[int]Cost{0: {}}, btrees: map[int]Cost{}}
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
	default:
		return c.btree(n)
	}
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

// maxItems is the most items of a btree node, and half of a full one stays
// behind when it is split.
const (
	maxItems = 2*degree - 1
	halfNode = maxItems / 2
)

// btree is the cost in a tree that was filled in ascending order. Every insert
// goes down the right edge and splits the full nodes it meets, so that all nodes
// off the edge have halfNode items, and those on it follow from n.
func (c *Coster) btree(n int) Cost {
	if n == 0 {
		return Cost{}
	}
	if cost, ok := c.btrees[n]; ok {
		return cost
	}
	full := Cost{}                       // a subtree off the edge, by height
	edge := Cost{}                       // the edge node's subtree
	for _, items := range rightEdge(n) { // leaves first
		edge = node(items, full, edge)
		full = node(halfNode, full, full)
	}
	c.btrees[n] = edge
	return edge
}

// rightEdge is how many items the nodes on the right edge have, leaf first.
func rightEdge(n int) []int {
	edge := []int{1}
	for range n - 1 {
		if top := len(edge) - 1; edge[top] == maxItems {
			edge[top] = halfNode
			edge = append(edge, 1)
		}
		for l := len(edge) - 2; l >= 0; l-- {
			if edge[l] == maxItems {
				edge[l] = halfNode
				edge[l+1]++
			}
		}
		edge[0]++
	}
	return edge
}

// node is the cost in a node of n items whose children cost child each, the
// last one last. It follows items.find of google/btree: a binary search for the
// first item greater than the key, then one look at the item before it.
func node(n int, child, last Cost) Cost {
	var cost Cost
	for i := range n + 1 {
		down := searchSteps(n, i) + min(i, 1)
		if i > 0 {
			cost.Add(Cost{Hits: 1}.shift(down))
		}
		if i == n {
			child = last
		}
		cost.Add(child.shift(down))
	}
	return cost
}

// searchSteps is how often sort.Search over n items asks before it answers i.
func searchSteps(n, i int) (steps int) {
	for lo, hi := 0, n; lo < hi; steps++ {
		if mid := int(uint(lo+hi) >> 1); mid < i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return steps
}
