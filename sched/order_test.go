// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/textpoke/textpoke/records"
)

var allOrders = []Ordering{Table, Sorted, Shuffled, Descending}

func TestOrderNames(t *testing.T) {
	if want := []string{"table", "sorted", "random", "descending"}; !slices.Equal(OrderNames(), want) {
		t.Errorf("orders are %v, want %v", OrderNames(), want)
	}
	for i, name := range OrderNames() {
		if o, err := ParseOrder(name); err != nil || o != allOrders[i] || o.String() != name {
			t.Errorf("order %q: %v, %v", name, o, err)
		}
	}
	_, err := ParseOrder("Sorted")
	if want := `order "Sorted": not one of table, sorted, random, descending; did you mean sorted?`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// numbers is a subset of a table's records, in the table's order.
func numbers(t *rapid.T, tab *records.Table) []int {
	from := rapid.IntRange(0, tab.Len()).Draw(t, "from")
	step := rapid.IntRange(1, 5).Draw(t, "step")
	var which []int
	for i := from; i < tab.Len(); i += step {
		which = append(which, i)
	}
	return which
}

// TestArrange: every order is a permutation of what was given, fixed by the
// seed, in the order that it says, and does not touch the table.
func TestArrange(t *testing.T) {
	for _, src := range []string{"gen:n=500,groups=9", "gen:n=500,order=random",
		"gen:n=500,order=descending,modules=0.2"} {
		tab := table(t, src)
		before := slices.Clone(tab.Addrs())
		for _, o := range allOrders {
			t.Run(src+"/"+o.String(), func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					given := numbers(t, tab)
					seed := rapid.Uint64().Draw(t, "seed")
					got, again := slices.Clone(given), slices.Clone(given)
					o.Arrange(got, tab, seed)
					o.Arrange(again, tab, seed)
					if !slices.Equal(got, again) {
						t.Fatal("the same seed gave two orders")
					}
					if back := slices.Sorted(slices.Values(got)); !slices.Equal(back, given) {
						t.Fatal("not a permutation")
					}
					checkOrder(t, o, given, got, tab)
				})
			})
		}
		if !slices.Equal(tab.Addrs(), before) {
			t.Errorf("%s: the table was written", src)
		}
	}
}

func checkOrder(t *rapid.T, o Ordering, given, got []int, tab *records.Table) {
	addrs := make([]records.Addr, len(got))
	for i, rec := range got {
		addrs[i] = tab.Addr(rec)
	}
	switch o {
	case Table:
		if !slices.Equal(got, given) {
			t.Fatal("the table's order is not kept")
		}
	case Sorted:
		if !slices.IsSorted(addrs) {
			t.Fatal("not ascending")
		}
	case Descending:
		if slices.Reverse(addrs); !slices.IsSorted(addrs) {
			t.Fatal("not descending")
		}
	}
}

// TestDescendingIsSortedBackwards, where no address is there twice.
func TestDescendingIsSortedBackwards(t *testing.T) {
	tab := table(t, "gen:n=3000,order=random,modules=0.1")
	up, down := make([]int, tab.Len()), make([]int, tab.Len())
	for i := range up {
		up[i], down[i] = i, i
	}
	Sorted.Arrange(up, tab, 0)
	Descending.Arrange(down, tab, 0)
	if slices.Reverse(down); !slices.Equal(up, down) {
		t.Error("descending is not sorted backwards")
	}
}

// TestShuffledSeeds: each seed has an order of its own, and none is the table's.
func TestShuffledSeeds(t *testing.T) {
	tab := table(t, "gen:n=1000")
	seen := [][]int{make([]int, tab.Len())}
	for i := range seen[0] {
		seen[0][i] = i
	}
	for seed := range uint64(20) {
		which := slices.Clone(seen[0])
		Shuffled.Arrange(which, tab, seed)
		for _, other := range seen {
			if slices.Equal(which, other) {
				t.Errorf("seed %d gave an order that was there", seed)
			}
		}
		seen = append(seen, which)
	}
}

// TestSeed: the seed is the generator's first word, so that orders of other versions stay.
func TestSeed(t *testing.T) {
	table, err := records.Open(t.Context(), "gen:n=20", records.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]int, 20), make([]int, 20)
	for i := range got {
		got[i], want[i] = i, i
	}
	rand.New(rand.NewPCG(7, 0)).Shuffle(len(want), func(i, j int) { want[i], want[j] = want[j], want[i] })
	if Shuffled.Arrange(got, table, 7); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
