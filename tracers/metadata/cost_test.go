// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"math"
	"math/bits"
	"testing"
)

// TestFixedCost plays the chains: a function is compared with those that came to
// its bucket after it.
func TestFixedCost(t *testing.T) {
	const n = 3000
	for _, buckets := range []int{256, 1024} {
		f := NewFixed(buckets)
		chain := map[uint64][]int{}
		for i := range n {
			if err := f.Set(&Record{Func: at(i), Args: 1}); err != nil {
				t.Fatal(err)
			}
			// The kernel's hash_64: the upper bits of the product.
			b := uint64(at(i)) * 0x61C8864680B583EB >> (64 - bits.TrailingZeros(uint(buckets)))
			chain[b] = append([]int{i}, chain[b]...)
		}
		for _, c := range chain {
			for place, i := range c {
				if got, want := f.Cost(at(i)), (Cost{place + 1, place + 3, place + 3}); got != want {
					t.Fatalf("%d buckets, function %d: %+v, want %+v", buckets, i, got, want)
				}
			}
		}
		if got, want := f.Bytes(), buckets*8+n*24; got < want || got > want+64 {
			t.Errorf("%d bytes, want %d and a little", got, want)
		}
	}
}

// TestResizableCost: at most 2.5 comparisons on average by Knuth's formula for
// tables that are half full (1.5 when it finds something), and few lines.
func TestResizableCost(t *testing.T) {
	for _, n := range []int{1, 64, 1000, 16384, 50_000, 65_536} {
		tab := filled(t, ResizableHash, n).(*Resizable)
		tab.Settle()
		var sum, lines, most int
		for i := range n {
			c := tab.Cost(at(i))
			sum, lines, most = sum+c.Comparisons, lines+c.Lines, max(most, c.Comparisons)
			if c.Loads != 4 || c.Lines > 2+c.Comparisons/4+1 {
				t.Fatalf("%d functions: %+v", n, c)
			}
		}
		size := len(tab.head.Load().slots)
		load := float64(n) / float64(size)
		want := (1 + 1/(1-load)) / 2
		if got := float64(sum) / float64(n); got > want*1.1 {
			t.Errorf("%d functions in %d cells: %.3f comparisons, want about %.3f", n, size, got, want)
		}
		if load > 0.5 || (size > minCells && load < 0.125) || tab.Bytes() < 16*size {
			t.Errorf("%d functions in %d cells, %d bytes", n, size, tab.Bytes())
		}
		t.Logf("n=%d: %.3f comparisons (Knuth %.3f), most %d, %.3f lines, %.1f bytes each", n,
			float64(sum)/float64(n), want, most, float64(lines)/float64(n), float64(tab.Bytes())/float64(n))
	}
}

func TestPaddingCost(t *testing.T) {
	p := filled(t, FunctionPadding, 5000).(*Padding)
	for i := range 5000 {
		if c := p.Cost(at(i)); c != (Cost{1, 3, 3}) {
			t.Fatalf("%+v", c)
		}
	}
	// 8192 places of 8 bytes, 5000 numbers of 4.
	if got, want := p.Bytes(), 8192*8+5000*4; got < want || got > want+200 {
		t.Errorf("%d bytes, want %d and a little", got, want)
	}
}

// TestWorkIsBounded: no change moves more than 16 cells, no table is over half full,
// and no move is begun before the last one has ended, whatever the order of
// changes.
func TestWorkIsBounded(t *testing.T) {
	tab := NewResizable()
	moves, next := 0, 0
	look := func() {
		c := tab.head.Load()
		if 2*c.used > len(c.slots) {
			t.Fatalf("%d of %d cells have an address", c.used, len(c.slots))
		}
		to := c.next.Load()
		if to == nil {
			return
		}
		if 2*to.used > len(to.slots) || to.next.Load() != nil {
			t.Fatalf("while %d cells move: %d of %d have an address, next %p", len(c.slots), to.used, len(to.slots),
				to.next.Load())
		}
		moves++
	}
	change := func(f func()) {
		head, moved := tab.head.Load(), tab.moved
		f()
		look()
		if tab.head.Load() == head && head.next.Load() != nil && tab.moved > moved+moveCells {
			t.Fatalf("%d cells moved at once", tab.moved-moved)
		}
	}
	add := func() { change(func() { _ = tab.Set(&Record{Func: at(next), Args: 1}) }); next++ }
	first := 0
	drop := func() { change(func() { tab.Remove(at(first)) }); first++ }
	for range 20_000 { // grows
		add()
	}
	for range 40_000 { // always new ones: cells whose function has gone fill it
		add()
		drop()
	}
	for tab.Len() > 0 { // shrinks
		drop()
	}
	tab.Settle()
	if size := len(tab.head.Load().slots); size > 4*minCells {
		t.Errorf("%d cells for nobody", size)
	}
	if moves < 3000 {
		t.Errorf("only %d changes beside a move", moves)
	}
}

// TestNewSize is what the bound rests on, for every size and number.
func TestNewSize(t *testing.T) {
	for size := minCells; size <= 1<<12; size *= 2 {
		for n := 0; 2*n <= size; n++ {
			to := newSize(size, n)
			during := int(math.Ceil(float64(size) / moveCells))
			if bits.OnesCount(uint(to)) != 1 || 2*(n+during) > to {
				t.Fatalf("%d records of %d cells go to %d", n, size, to)
			}
		}
	}
}
