// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"cmp"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

// Index finds the slot of an address among the addresses of one batch.
type Index interface {
	// Find counts its comparisons of addresses in p. It takes no lock and
	// does not allocate.
	Find(at records.Addr, p *cpus.Probe) (slot int, ok bool)
	// Len is the number of addresses.
	Len() int
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
		return newVector(b)
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
