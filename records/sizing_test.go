// SPDX-License-Identifier: Apache-2.0

package records

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGroupSizes(t *testing.T) {
	for _, c := range []struct {
		records, pages int
		wantPages      []int
		want           []int
	}{
		{1, 0, []int{1}, []int{1}},
		{256, 0, []int{1}, []int{256}},
		{257, 0, []int{2}, []int{257}},
		{600, 0, []int{2, 1}, []int{512, 88}},
		// "ftrace: allocating 34274 entries in 134 pages", 3 groups.
		{34274, 0, []int{128, 4, 2}, []int{32768, 1024, 482}},
		{42757, 176, []int{128, 32, 16}, []int{32768, 8192, 1797}},
		{48048, 192, []int{128, 64}, []int{32768, 15280}},
		{41845, 168, []int{128, 32, 8}, []int{32768, 8192, 885}},
		{100, 6, []int{4, 2}, []int{100}},                                                    // the second group stays empty
		{600, 1, []int{2, 1}, []int{512, 88}},                                                // too few pages count as enough
		{600000, 0, []int{1024, 1024, 256, 32, 8}, []int{262144, 262144, 65536, 8192, 1984}}, // no block is larger
	} {
		if d := cmp.Diff(c.wantPages, GroupPages(max(c.pages, Pages(c.records)))); d != "" {
			t.Errorf("%d records: pages %s", c.records, d)
		}
		if d := cmp.Diff(c.want, GroupSizes(c.records, c.pages)); d != "" {
			t.Errorf("%d records in %d pages: %s", c.records, c.pages, d)
		}
	}
	if got := GroupSizes(0, 0); len(got) != 0 {
		t.Errorf("no records: %v", got)
	}
}

func TestGroupSizesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1_000_000).Draw(t, "records")
		extra := rapid.IntRange(0, 100).Draw(t, "extra")
		pages := GroupPages(Pages(n) + extra)
		sum := 0
		for i, p := range pages {
			if p&(p-1) != 0 || p > MaxGroupPages || i > 0 && (p > pages[i-1] || p == pages[i-1] && p < MaxGroupPages) {
				t.Fatalf("pages %v", pages)
			}
			sum += p
		}
		if sum != Pages(n)+extra {
			t.Fatalf("pages %v are %d, want %d", pages, sum, Pages(n)+extra)
		}
		sizes := GroupSizes(n, Pages(n)+extra)
		for i, s := range sizes {
			full := pages[i] * RecordsPerPage
			if s <= 0 || s > full || i < len(sizes)-1 && s != full {
				t.Fatalf("sizes %v in pages %v", sizes, pages)
			}
			n -= s
		}
		if n != 0 {
			t.Fatalf("%d records without a group", n)
		}
	})
}

// TestUnits checks where load units end: at another module, and at a descent.
func TestUnits(t *testing.T) {
	var recs []Raw
	for i := range 600 {
		recs = append(recs, Raw{Addr(0x1000 + 16*i), "f", ""})
	}
	for i := range 300 {
		recs = append(recs, Raw{Addr(0x10000 + 16*i), "f", "m"})
	}
	for i := range 10 { // loaded again, lower
		recs = append(recs, Raw{Addr(0x8000 + 16*i), "f", "m"})
	}
	tab, err := New("x", "", recs)
	if err != nil {
		t.Fatal(err)
	}
	want := []Group{{0, 512}, {512, 600}, {600, 900}, {900, 910}}
	if d := cmp.Diff(want, tab.Groups()); d != "" {
		t.Error(d)
	}
}
