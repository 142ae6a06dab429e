// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"slices"

	"github.com/google/btree"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// degree of the btree: nodes hold up to 2*degree-1 items. 32 is about the best
// of the powers of two for items of this size up to a million of them.
const degree = 32

// item is one address in the tree, or the one that is looked for. It is kept to
// 16 bytes: a search is as fast as its items are small.
type item struct {
	key uint64 // from the lowest address on, doubled; odd in the item that is looked for
	ref *int32 // its slot; in the item that is looked for, the counter of comparisons
}

// less compares addresses, and counts: one of the two is being looked for,
// except while the tree is filled.
func less(a, b item) bool {
	if a.key&1 != 0 {
		*a.ref++
	} else if b.key&1 != 0 {
		*b.ref++
	}
	return a.key>>1 < b.key>>1
}

// btreeIndex is the sorted index that holds whatever order patches come in.
type btreeIndex struct {
	tree *btree.BTreeG[item]
	low  records.Addr
	span records.Addr // from the lowest address to the highest
}

func newBTree(b Batch) *btreeIndex {
	x := &btreeIndex{tree: btree.NewG(degree, less)}
	if len(b.Addrs) == 0 {
		return x
	}
	x.low = slices.Min(b.Addrs)
	x.span = slices.Max(b.Addrs) - x.low
	slots := make([]int32, len(b.Addrs))
	for slot, at := range b.Addrs {
		slots[slot] = int32(slot)
		x.tree.ReplaceOrInsert(item{uint64(at-x.low) << 1, &slots[slot]})
	}
	return x
}

func (x *btreeIndex) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	if at-x.low > x.span { // also below: the difference wraps around
		return 0, false
	}
	it, ok := x.tree.Get(item{uint64(at-x.low)<<1 | 1, &p.Comparisons})
	if !ok {
		return 0, false
	}
	return int(*it.ref), true
}

func (x *btreeIndex) Len() int { return x.tree.Len() }
