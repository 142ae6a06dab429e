package int3

import (
	"github.com/google/btree"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// degree of the btree: nodes hold up to 2*degree-1 items. 32 is the best of the
// powers of two for keys of this size up to a million of them.
const degree = 32

// item is one address in the btree. The item that is looked for carries the
// probe that counts; those in the tree have none.
type item struct {
	at    records.Addr
	slot  int32
	probe *cpus.Probe
}

func less(a, b item) bool {
	if a.probe != nil {
		a.probe.Comparisons++
	} else if b.probe != nil {
		b.probe.Comparisons++
	}
	return a.at < b.at
}

// btreeIndex is the sorted index that holds whatever order patches come in.
type btreeIndex struct{ tree *btree.BTreeG[item] }

func newBTree(b Batch) *btreeIndex {
	t := btree.NewG(degree, less)
	for slot, at := range b.Addrs {
		t.ReplaceOrInsert(item{at: at, slot: int32(slot)})
	}
	return &btreeIndex{t}
}

func (x *btreeIndex) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	it, ok := x.tree.Get(item{at: at, probe: p})
	return int(it.slot), ok
}

func (x *btreeIndex) Len() int { return x.tree.Len() }
