// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"

	"github.com/google/btree"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Index finds the slot of an address among the addresses of one batch.
type Index interface {
	// Find counts its comparisons of addresses in p. It takes no lock and
	// does not allocate.
	Find(at records.Addr, p *cpus.Probe) (slot int, ok bool)
}

// Lookup names an Index.
type Lookup uint8

// The kinds.
const (
	BTree  Lookup = iota // github.com/google/btree
	Vector               // binary search, as the kernel since 5.3 (text_poke_loc_init's sorted tp_vec)
	Groups               // linear over groups, binary search inside (lookup_rec, kernel/trace/ftrace.c)
	Hash                 // open addressing
)

var kindNames = []string{"btree", "vector", "groups", "hash"}

// LookupNames lists the kinds.
func LookupNames() []string { return kindNames }

func (k Lookup) String() string { return kindNames[k] }

// ParseLookup reads a kind's name.
func ParseLookup(s string) (Lookup, error) { return spelling.Number[Lookup]("lookup", s, kindNames) }

// Batch is what an Index is built from: addresses in slot order, none of them 0
// and none twice. Starts holds the slots at which a new group of records begins,
// 0 left out; only Groups looks at it. An Index may keep the slices: they are not
// to be written once it is built.
type Batch struct {
	Addrs  []records.Addr
	Starts []int
}

// Build makes an Index. The addresses must be in the order that the kind needs: ascending for
// Vector, ascending inside groups for Groups, any for the others. Build does not check the order,
// because people ask this program how an unsorted vector misleads its readers.
func Build(k Lookup, b Batch) Index {
	switch k {
	case Vector:
		return vector(b.Addrs)
	case Groups:
		return newGroups(b)
	case Hash:
		return newHash(b)
	default:
		return newBTree(b)
	}
}

// Place is where an address stands among the records.
type Place struct {
	Group int32 // of the record
	Addr  records.Addr
}

// Compare orders places as an index of this kind wants its slots: by address,
// and inside groups where there are groups.
func (k Lookup) Compare(a, b Place) int {
	if k == Groups && a.Group != b.Group {
		return cmp.Compare(a.Group, b.Group)
	}
	return cmp.Compare(a.Addr, b.Addr)
}

// hash is open addressing with linear probing, at most half full. It answers
// exact addresses only: which site an address lies in, a sorted index can tell
// and a hash cannot.
type hash struct {
	cells []cell
	shift uint
}

type cell struct {
	at   records.Addr // 0: empty; no site is at 0
	slot int32
}

func newHash(b Batch) *hash {
	size := uint(max(bits.Len(uint(2*len(b.Addrs))), 1))
	h := &hash{cells: make([]cell, 1<<size), shift: 64 - size}
	for slot, at := range b.Addrs {
		i := h.home(at)
		for h.cells[i].at != 0 {
			i = (i + 1) & (len(h.cells) - 1)
		}
		h.cells[i] = cell{at, int32(slot)}
	}
	return h
}

// home is Fibonacci hashing (Knuth, TAOCP vol. 3, 6.4), as the kernel's hash_64.
func (h *hash) home(at records.Addr) int {
	return int(uint64(at) * 0x9e3779b97f4a7c15 >> h.shift)
}

func (h *hash) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	for i := h.home(at); h.cells[i].at != 0; i = (i + 1) & (len(h.cells) - 1) {
		p.Comparisons++
		if h.cells[i].at == at {
			return int(h.cells[i].slot), true
		}
	}
	return 0, false
}

// groups walks over the groups of records, and searches in the one whose range
// holds the address: lookup_rec in kernel/trace/ftrace.c, which ftrace's own
// breakpoint handler used until Linux 5.5.
type groups struct {
	addrs []records.Addr
	ends  []int // one past the last slot of each group
}

func newGroups(b Batch) *groups {
	if len(b.Addrs) == 0 {
		return &groups{}
	}
	return &groups{b.Addrs, append(append([]int(nil), b.Starts...), len(b.Addrs))}
}

func (x *groups) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	first := 0
	for _, end := range x.ends {
		p.Comparisons++
		if at >= x.addrs[first] {
			p.Comparisons++
			if at <= x.addrs[end-1] {
				if slot, ok := search(x.addrs[first:end], at, p); ok {
					return first + slot, true
				}
			}
		}
		first = end
	}
	return 0, false
}

// vector is one sorted run of addresses, searched as the kernel's __inline_bsearch
// does (include/linux/bsearch.h): one three-way comparison a probe.
type vector []records.Addr

func (v vector) Find(at records.Addr, p *cpus.Probe) (int, bool) {
	return search(v, at, p)
}

// search is a binary search over ascending addresses.
func search(v []records.Addr, at records.Addr, p *cpus.Probe) (int, bool) {
	lo, hi := 0, len(v)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		p.Comparisons++
		switch {
		case v[mid] == at:
			return mid, true
		case v[mid] < at:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

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
