// SPDX-License-Identifier: Apache-2.0

package metadata

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/textpoke/textpoke/records"
)

const (
	// minCells is the size of an empty table.
	minCells = 8
	// moveCells is how many cells of the old table each change moves. With it a
	// move of c cells is over after c/16 changes, before the new table could be
	// half full: see newSize.
	moveCells = 16
)

// Resizable is a hash that grows and shrinks with its entries:
//
//	head -> cells [at, rec][at, rec][0, nil][at, rec]...
//	          |                   |
//	         next               record
//	          v
//	        cells, twice as many, while functions move there
//
// Cells are searched one behind the other from the address's own (linear
// probing); four of them share a cache line, which chains would not. At most half
// of the cells have an address, so that a search ends after 1.5 on average (Knuth,
// TAOCP vol. 3, 6.4, unsuccessful 2.5). No bound holds for a single search.
//
// An address stays in its cell until the whole table goes; only its record comes
// and goes. When half of the cells have one, or few have a record, a new table is
// put behind the old one, as rhashtable's future_tbl: from now on new functions go
// there, and each change moves 16 cells. A function is in the new table before
// it leaves the old one, and lookups search the old one first, then the one behind
// it: whatever they overtake, they meet it. When all have moved the new
// table becomes the first. A lookup in the old one goes on to the new one.
//
// So no change works on more than 16 cells and its own search; but to get the new
// table's memory, which is all zeros, takes as long as it takes.
type Resizable struct {
	changes
	head  atomic.Pointer[cells]
	moved int // cells of head that have moved; while there is a next
}

// cells are one table.
type cells struct {
	slots []cell
	shift uint8
	used  int // cells with an address; for changes
	next  atomic.Pointer[cells]
}

type cell struct {
	at  atomic.Uint64 // 0: no function ever
	rec atomic.Pointer[Record]
}

func newCells(size int) *cells {
	return &cells{slots: make([]cell, size), shift: uint8(64 - bits.Len(uint(size-1)))}
}

// NewResizable makes an empty table, as the zero value is.
func NewResizable() *Resizable { return &Resizable{} }

// Lookup implements Table.
func (t *Resizable) Lookup(at records.Addr) *Record {
	for c := t.head.Load(); c != nil; c = c.next.Load() {
		if s := c.find(at); s != nil {
			if r := s.rec.Load(); r != nil {
				return r
			}
		}
	}
	return nil
}

// find is the cell that has an address, or nil.
func (c *cells) find(at records.Addr) *cell {
	mask := uint64(len(c.slots) - 1)
	for i := home(at, c.shift); ; i++ {
		s := &c.slots[i&mask]
		switch s.at.Load() {
		case uint64(at):
			return s
		case 0:
			return nil
		}
	}
}

// put gives a function a record, in a cell of its own. It stores the address first: a cell
// without a record counts as empty, and no cell has a record without an address.
func (c *cells) put(r *Record) {
	mask := uint64(len(c.slots) - 1)
	for i := home(r.Func, c.shift); ; i++ {
		s := &c.slots[i&mask]
		switch s.at.Load() {
		case uint64(r.Func):
			s.rec.Store(r)
			return
		case 0:
			s.at.Store(uint64(r.Func))
			s.rec.Store(r)
			c.used++
			return
		}
	}
}

// cell is the cell in which a function has its record, or nil. For changes.
func (t *Resizable) cell(at records.Addr) *cell {
	for c := t.head.Load(); c != nil; c = c.next.Load() {
		if s := c.find(at); s != nil && s.rec.Load() != nil {
			return s
		}
	}
	return nil
}

// Set implements Table.
func (t *Resizable) Set(r *Record) error {
	return t.set(r, func() bool {
		t.move()
		if s := t.cell(r.Func); s != nil {
			s.rec.Store(r)
			return false
		}
		last := t.head.Load()
		if next := last.next.Load(); next != nil {
			last = next
		}
		last.put(r)
		t.resize(t.Len() + 1)
		return true
	})
}

// Remove implements Table.
func (t *Resizable) Remove(at records.Addr) bool {
	return at != 0 && t.remove(func() bool {
		t.move()
		s := t.cell(at)
		if s == nil {
			return false
		}
		s.rec.Store(nil)
		t.resize(t.Len() - 1)
		return true
	})
}

// resize begins a move for n records if none is on and one is due: half of the cells have an
// address, or less than an eighth of them a record.
func (t *Resizable) resize(n int) {
	c := t.head.Load()
	size := len(c.slots)
	if c.next.Load() != nil || 2*c.used < size && (8*n >= size || size == minCells) {
		return
	}
	c.next.Store(newCells(newSize(size, n)))
	t.moved = 0
}

// newSize is the size for n records that are in a table of some size: n are a quarter
// of it or less, and it is not below a quarter of the old. While the old table's
// cells move, size/16 more may come, which are a quarter of the new one at most:
// it cannot be over half full before the move ends.
func newSize(size, n int) int {
	to := max(minCells, size/4)
	for 4*n > to {
		to *= 2
	}
	return to
}

// Settle ends a move that is on. It is optional: but a table without further changes keeps two
// tables until then. The kernel's has a worker for it (rht_deferred_worker, lib/rhashtable.c).
// Changes get in between.
func (t *Resizable) Settle() {
	for more := true; more; {
		t.change.Lock()
		more = t.move()
		t.change.Unlock()
	}
}

// move moves some cells on, if a move is on, and says whether there are more.
func (t *Resizable) move() bool {
	from := t.head.Load()
	if from == nil { // the zero value
		t.head.Store(newCells(minCells))
		return false
	}
	to := from.next.Load()
	if to == nil {
		return false
	}
	end := min(t.moved+moveCells, len(from.slots))
	for i := t.moved; i < end; i++ {
		if s := &from.slots[i]; s.rec.Load() != nil {
			to.put(s.rec.Load())
			s.rec.Store(nil)
		}
	}
	t.moved = end
	if end < len(from.slots) {
		return true
	}
	t.head.Store(to)
	return false
}

// Cost implements Counted: the table, the place of its cells, a cell (its place does not
// depend on the contents of the one before), the record.
func (t *Resizable) Cost(at records.Addr) Cost {
	var cost Cost
	for c := t.head.Load(); c != nil; c = c.next.Load() {
		cost.Loads += 2 // the table, where its cells are
		mask := uint64(len(c.slots) - 1)
		line := ^uint64(0)
		for i := home(at, c.shift); ; i++ {
			if now := i & mask / cellsPerLine; now != line {
				cost.Lines++
				line = now
			}
			s := &c.slots[i&mask]
			key := s.at.Load()
			if key == 0 {
				break
			}
			cost.Comparisons++
			if key == uint64(at) {
				if s.rec.Load() == nil {
					break
				}
				cost.Loads += 2
				cost.Lines++
				return cost
			}
		}
	}
	return cost
}

const cellsPerLine = 64 / uint64(unsafe.Sizeof(cell{}))

// Bytes implements Counted.
func (t *Resizable) Bytes() int {
	b := int(unsafe.Sizeof(*t))
	for c := t.head.Load(); c != nil; c = c.next.Load() {
		b += int(unsafe.Sizeof(*c)) + len(c.slots)*int(unsafe.Sizeof(cell{}))
	}
	return b
}
