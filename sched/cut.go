// SPDX-License-Identifier: Apache-2.0

// Package sched orders patches and cuts them into batches by the kernel's rules; no other
// package cuts batches. Package coordinator below it merges the wishes of many clients
// into few updates, and needs nothing of this one.
package sched

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// Flush is why a batch was closed.
type Flush uint8

// The causes.
const (
	Full  Flush = iota // no slot was left
	Order              // the next address is lower than the last
	Final              // nothing comes any more
)

var flushNames = [...]string{"full", "order", "final"}

func (f Flush) String() string { return flushNames[f] }

// Buffer is the vector that patches are queued in.
type Buffer struct {
	Slots int // 0: dynamic, as many as there are patches
}

// Dynamic has as many slots as patches.
var Dynamic = Buffer{}

// pageSize is what the kernel's vector was made to fill.
const pageSize = 4096

// ParseBuffer reads "dynamic" or a number of slots.
func ParseBuffer(s string) (Buffer, error) {
	if s == "dynamic" {
		return Dynamic, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxSlots {
		return Buffer{}, fmt.Errorf("buffer %q: want a number of slots from 1 to %d, or dynamic", s, maxSlots)
	}
	return Buffer{n}, nil
}

// maxSlots is more than any table has records.
const maxSlots = 1 << 30

func (b Buffer) String() string {
	if b == Dynamic {
		return "dynamic"
	}
	return strconv.Itoa(b.Slots)
}

// EntryBytes is the size of one slot: that of struct text_poke_loc in the kernel
// whose page held so many: 128 of 32 bytes (Linux 5.3 and 5.4, c0213b0ac03c), 170 of
// 24 (5.5, c3d6324f841b, static keys alone), 256 of 16 ("x86/alternative: Shrink
// text_poke_loc", 5.6, with which ftrace came). All other numbers are of 16.
func (b Buffer) EntryBytes() int {
	switch b.Slots {
	case 128, 170:
		return pageSize / b.Slots
	default:
		return 16
	}
}

// Size is what the vector takes for so many patches, in bytes and in pages.
func (b Buffer) Size(patches int) (bytes, pages int) {
	slots := b.Slots
	if b == Dynamic {
		slots = patches
	}
	bytes = slots * b.EntryBytes()
	return bytes, (bytes + pageSize - 1) / pageSize
}

// Batch is a run of patches that one pass of a protocol applies, and why it ends.
type Batch struct {
	poke.Range
	Flush Flush
}

// Cut cuts patches, whose addresses at gives, into batches by the kernel's rules
// (text_poke_flush and tp_order_fail, arch/x86/kernel/alternative.c, Linux 5.6;
// smp_text_poke_batch_add since 6.16): before a patch is appended the vector is
// flushed when it is full, or when its last address is greater than the new one.
// Equal addresses are in order. A vector that has just become full is not
// flushed until something follows. unsorted leaves the second rule out.
func Cut(n int, at func(i int) records.Addr, b Buffer, unsorted bool) iter.Seq[Batch] {
	return func(yield func(Batch) bool) {
		from := 0
		for i := 1; i < n; i++ {
			cause := Full
			switch {
			case i-from == b.Slots:
			case !unsorted && at(i-1) > at(i):
				cause = Order
			default:
				continue
			}
			if !yield(Batch{poke.Range{From: from, To: i}, cause}) {
				return
			}
			from = i
		}
		if n > 0 {
			yield(Batch{poke.Range{From: from, To: n}, Final})
		}
	}
}

// Batches is how many batches patches are cut into, whose addresses at gives.
func Batches(n int, at func(i int) records.Addr, b Buffer) (batches int) {
	for range Cut(n, at, b, false) {
		batches++
	}
	return batches
}

// Ascending gives ascending addresses, for patches whose own addresses are not known: no
// batch of them is closed early.
func Ascending(i int) records.Addr { return records.Addr(i) }

// CutFor cuts as a protocol wants it: only those that queue in a vector know
// flushes and their causes.
func CutFor(how poke.Batching, n int, at func(i int) records.Addr, b Buffer, unsorted bool) iter.Seq[Batch] {
	switch how {
	case poke.Single:
		return Cut(n, at, Buffer{1}, true)
	case poke.Whole:
		return Cut(n, at, Dynamic, true)
	default:
		return Cut(n, at, b, unsorted)
	}
}

// Ordering is the order in which patches are queued.
type Ordering uint8

// The orderings.
const (
	Table      Ordering = iota // as the kernel walks the records
	Sorted                     // by address
	Shuffled                   // at random
	Descending                 // by address, the highest first
)

var orderNames = []string{"table", "sorted", "random", "descending"}

// OrderNames lists the orderings.
func OrderNames() []string { return orderNames }

func (o Ordering) String() string { return orderNames[o] }

// ParseOrder reads an ordering's name.
func ParseOrder(s string) (Ordering, error) { return spelling.Number[Ordering]("order", s, orderNames) }

// Arrange puts records, given by their numbers in the table, in order. It sorts
// in place; equal addresses keep the order they came in.
func (o Ordering) Arrange(which []int, t *records.Table, seed uint64) {
	byAddr := func(a, b int) int { return cmp.Compare(t.Addr(a), t.Addr(b)) }
	switch o {
	case Sorted:
		slices.SortStableFunc(which, byAddr)
	case Descending:
		slices.SortStableFunc(which, func(a, b int) int { return byAddr(b, a) })
	case Shuffled:
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(which), func(i, j int) { which[i], which[j] = which[j], which[i] })
	}
}
