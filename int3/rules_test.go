// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

// TestNoReferences: until 5.5 a handler looked whether there was a batch, and nobody could
// tell whether it had left: the table is drained as soon as the patcher says so.
func TestNoReferences(t *testing.T) {
	tab := NewTable(NoRef, 3)
	if tab.Enter(0) {
		t.Error("nothing is published, and a handler gets in")
	}
	publish(tab, Vector, 0, 2)
	for range 3 {
		for cpu := range 3 {
			if !tab.Enter(cpu) || tab.References() != 1 {
				t.Errorf("CPU %d: %d references", cpu, tab.References())
			}
		}
	}
	tab.Leave(1)
	if tab.Unpublish(); !tab.Drained() || tab.Lost() || tab.Enter(1) {
		t.Errorf("drained %v, lost %v: want the first alone, and nobody gets in", tab.Drained(), tab.Lost())
	}
}

// TestLost: a reference that is given back twice is lost, whichever CPU does so, and the
// table is not drained by it.
func TestLost(t *testing.T) {
	for _, kind := range variants {
		for _, make := range []func(Refs, int) *Table{NewTable, NewSerialTable} {
			for twice := range 3 {
				tab := make(kind, 3)
				publish(tab, BTree, 0, 1)
				for cpu := range 3 {
					if !tab.Enter(cpu) {
						t.Fatalf("%v: CPU %d does not get in", kind, cpu)
					}
				}
				want := int32(2) // the patcher's and its own
				if kind == SharedRef {
					want = 4
				}
				if got := tab.References(); got != want {
					t.Errorf("%v: %d references, want %d", kind, got, want)
				}
				for cpu := range 3 {
					tab.Leave(cpu)
				}
				if tab.Unpublish(); tab.Lost() || !tab.Drained() {
					t.Errorf("%v: all have left: lost %v, drained %v", kind, tab.Lost(), tab.Drained())
				}
				if tab.Leave(twice); !tab.Lost() || tab.Drained() {
					t.Errorf("%v: CPU %d left twice: lost %v, drained %v", kind, twice, tab.Lost(), tab.Drained())
				}
			}
		}
	}
}

// TestCompare: a sorted vector wants places by address, the walk over groups wants them by
// address within each group.
func TestCompare(t *testing.T) {
	var all []Place
	for g := range int32(3) {
		for a := range records.Addr(3) {
			all = append(all, Place{g, a})
		}
	}
	for _, k := range kinds() {
		for _, a := range all {
			for _, b := range all {
				x, y := uint64(a.Addr), uint64(b.Addr)
				if k == Groups {
					x, y = x+10*uint64(a.Group), y+10*uint64(b.Group)
				}
				if got := k.Compare(a, b); got != cmp.Compare(x, y) {
					t.Errorf("%v: %v and %v: %d, want %d", k, a, b, got, cmp.Compare(x, y))
				}
			}
		}
	}
}

// TestHashIsHalfFull: whatever is not in a hash is missed after few comparisons, since at least half
// of its cells are empty, and no more than three quarters.
func TestHashIsHalfFull(t *testing.T) {
	for n := 1; n < 3000; n += 1 + n/8 {
		h := newHash(kernelLike(n))
		if cells := len(h.cells); cells < 2*n || cells > 4*n {
			t.Errorf("%d addresses in %d cells", n, cells)
		}
	}
}

// TestProbesAreCounted: a search counts a comparison for each address that it looks at, in each
// kind of index as its algorithm says.
func TestProbesAreCounted(t *testing.T) {
	b := ascending(rand.New(rand.NewPCG(6, 0)), 400)
	b.Starts = []int{100, 250}
	out := b.Addrs[len(b.Addrs)-1] + 1
	for _, at := range append(slices.Clone(b.Addrs), b.Addrs[0]-1, out) {
		binary := func(v []records.Addr) (n int32) {
			for len(v) > 0 { // the middle, then one of the halves
				n++
				switch mid := len(v) / 2; {
				case v[mid] == at:
					return n
				case v[mid] < at:
					v = v[mid+1:]
				default:
					v = v[:mid]
				}
			}
			return n
		}
		groups, first := int32(0), 0
		for _, end := range []int{100, 250, 400} {
			group := b.Addrs[first:end]
			if groups++; at >= group[0] {
				groups++
				if at <= group[len(group)-1] {
					groups += binary(group)
					break
				}
			}
			first = end
		}
		for k, want := range map[Lookup]int32{Vector: binary(b.Addrs), Groups: groups} {
			var p cpus.Probe
			if Build(k, b).Find(at, &p); p.Comparisons != want {
				t.Errorf("%v: %v takes %d comparisons, want %d", k, at, p.Comparisons, want)
			}
		}
	}
	var p cpus.Probe
	if _, ok := Build(BTree, b).Find(out, &p); ok || p.Comparisons != 0 {
		t.Errorf("outside of a btree's addresses: %v, %d comparisons, want none", ok, p.Comparisons)
	}
}
