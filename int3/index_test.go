// SPDX-License-Identifier: Apache-2.0

package int3

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/records"
)

func TestNames(t *testing.T) {
	for i, name := range LookupNames() {
		if k, err := ParseLookup(name); err != nil || k != Lookup(i) || k.String() != name {
			t.Errorf("kind %q: %v (%v), %v", name, k, uint8(k), err)
		}
	}
	for i, name := range RefsNames() {
		if r, err := ParseRefs(name); err != nil || r != Refs(i) || r.String() != name {
			t.Errorf("refs %q: %v (%v), %v", name, r, uint8(r), err)
		}
	}
	if want := []string{"btree", "vector", "groups", "hash"}; !slices.Equal(LookupNames(), want) {
		t.Errorf("kinds are %v, want %v", LookupNames(), want)
	}
	if want := []string{"percpu", "shared", "none"}; !slices.Equal(RefsNames(), want) {
		t.Errorf("refs are %v, want %v", RefsNames(), want)
	}
}

func TestParseErrorsListTheNames(t *testing.T) {
	_, kind := ParseLookup("tree")
	_, refs := ParseRefs("BTREE")
	for _, c := range []struct {
		err  error
		want string
	}{
		{kind, `lookup "tree": not one of btree, vector, groups, hash; did you mean btree?`},
		{refs, `refs "BTREE": not one of percpu, shared, none`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// TestFind builds every kind from batches in the wildest order that it answers
// for.
func TestFind(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rng := drawRand(t)
				b := arranged(rng, k, ascending(rng, rapid.IntRange(0, 300).Draw(t, "n")))
				checkIndex(t, Build(k, b), b.Addrs)
			})
			rng := rand.New(rand.NewPCG(1, uint64(k)))
			b := arranged(rng, k, ascending(rng, 20_000))
			checkIndex(t, Build(k, b), b.Addrs)
		})
	}
}

// TestFindAtTheEnds has addresses next to the ends of the address space.
func TestFindAtTheEnds(t *testing.T) {
	for _, k := range kinds() {
		for _, addrs := range [][]records.Addr{nil, {1}, {^records.Addr(0)}, {1, ^records.Addr(0) - 1, ^records.Addr(0)}} {
			checkIndex(t, Build(k, Batch{Addrs: addrs}), addrs)
		}
	}
}

// TestGroupsOfAnySize has borders of groups everywhere: none, after each
// address, and all sizes between.
func TestGroupsOfAnySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	for size := 1; size <= 40; size++ {
		b := ascending(rng, 40)
		b.Starts = nil
		for i := size; i < 40; i += size {
			b.Starts = append(b.Starts, i)
		}
		checkIndex(t, Build(Groups, b), b.Addrs)
		b = shuffledGroups(rng, b)
		checkIndex(t, Build(Groups, b), b.Addrs)
	}
}

// TestUnsortedVectorMisses is the defect of Linux 6.16-rc1: patches that came
// one by one were queued in any order, and trap handlers searched the vector as
// if it were sorted.
func TestUnsortedVectorMisses(t *testing.T) {
	unsorted := Batch{Addrs: []records.Addr{0xffffffff81000100, 0xffffffff81000300, 0xffffffff81000200}}
	var p cpus.Probe
	x := Build(Vector, unsorted)
	for slot, found := range []bool{true, true, false} {
		got, ok := x.Find(unsorted.Addrs[slot], &p)
		if ok != found || ok && got != slot {
			t.Errorf("vector: slot %d: %d, found %t, want found %t", slot, got, ok, found)
		}
	}
	checkIndex(t, Build(BTree, unsorted), unsorted.Addrs)
	checkIndex(t, Build(Hash, unsorted), unsorted.Addrs)
}

// TestUnsortedVectorNeverLies: what an unsorted vector finds is right; it only
// misses, and in a random order it misses much.
func TestUnsortedVectorNeverLies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 0))
	b := shuffled(rng, ascending(rng, 256))
	x := Build(Vector, b)
	var p cpus.Probe
	missed := 0
	for slot, at := range b.Addrs {
		switch got, ok := x.Find(at, &p); {
		case !ok:
			missed++
		case got != slot:
			t.Fatalf("%v: slot %d, want %d", at, got, slot)
		}
	}
	if missed < 128 {
		t.Errorf("%d of 256 missed, want most", missed)
	}
}

// TestBuildLeavesTheBatch: building reads, and the index of one batch is not
// touched by building others, alone or at the same time.
func TestBuildLeavesTheBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	type built struct {
		index Index
		batch Batch
		same  Batch
	}
	var all []built
	for range 20 {
		for _, k := range kinds() {
			b := arranged(rng, k, ascending(rng, rng.IntN(3000)))
			same := Batch{slices.Clone(b.Addrs), slices.Clone(b.Starts)}
			all = append(all, built{Build(k, b), b, same})
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		seed := rng.Uint64()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for _, i := range rng.Perm(len(all)) {
				for _, k := range kinds() {
					Build(k, all[rng.IntN(len(all))].batch)
				}
				if err := wrong(all[i].index, all[i].same.Addrs); err != nil {
					t.Errorf("batch %d: %v", i, err)
				}
			}
		})
	}
	wg.Wait()
	for i, x := range all {
		if !reflect.DeepEqual(x.batch, x.same) {
			t.Errorf("batch %d was written", i)
		}
	}
}

// TestFindDoesNotAllocate also counts something, so that it looked at all.
func TestFindDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	for _, k := range kinds() {
		b := arranged(rng, k, ascending(rng, 5000))
		x := Build(k, b)
		var p cpus.Probe
		i := 0
		allocs := testing.AllocsPerRun(1000, func() {
			if _, ok := x.Find(b.Addrs[i%len(b.Addrs)], &p); !ok {
				t.Fatal("not found")
			}
			x.Find(b.Addrs[i%len(b.Addrs)]+1, &p)
			i += 7
		})
		if allocs != 0 {
			t.Errorf("%v: %v allocations a lookup, want none", k, allocs)
		}
		if int(p.Comparisons) < i/7 {
			t.Errorf("%v: %d comparisons of %d lookups", k, p.Comparisons, i/7)
		}
	}
}

// TestProbesAreNotShared: concurrent lookups count in their own probes only.
func TestProbesAreNotShared(t *testing.T) {
	b := kernelLike(2000)
	for _, k := range kinds() {
		x := Build(k, b)
		var alone cpus.Probe
		for _, at := range b.Addrs {
			x.Find(at, &alone)
		}
		probes := make([]cpus.Probe, 4)
		var wg sync.WaitGroup
		for i := range probes {
			wg.Go(func() {
				for _, at := range b.Addrs {
					x.Find(at, &probes[i])
				}
			})
		}
		wg.Wait()
		for i, p := range probes {
			if p != alone {
				t.Errorf("%v: lookup %d counted %d comparisons, want %d", k, i, p.Comparisons, alone.Comparisons)
			}
		}
	}
}

// TestHashIsHalfEmpty, which bounds how far a miss looks.
func TestHashIsHalfEmpty(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 0))
	for n := range 1100 {
		if h := newHash(ascending(rng, n)); len(h.cells) < 2*n || len(h.cells) > max(4*n, 2) {
			t.Errorf("%d addresses in %d cells", n, len(h.cells))
		}
	}
}

// TestGroupsNeedStarts: without its starts a batch of two unsorted groups is one
// unsorted run, so that starts are what makes it findable.
func TestGroupsNeedStarts(t *testing.T) {
	b := Batch{Addrs: []records.Addr{0x3000, 0x3010, 0x3020, 0x1000, 0x1010, 0x1020}, Starts: []int{3}}
	checkIndex(t, Build(Groups, b), b.Addrs)
	var p cpus.Probe
	if slot, ok := Build(Groups, Batch{Addrs: b.Addrs}).Find(0x3010, &p); ok {
		t.Errorf("found in slot %d of one unsorted group", slot)
	}
}
