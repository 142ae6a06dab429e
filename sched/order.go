// SPDX-License-Identifier: Apache-2.0

package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records"
)

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
