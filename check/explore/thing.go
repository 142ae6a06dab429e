// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Thing is one part of what a machine is at a moment: the unit in which it is noted
// what a step reads and writes.
type Thing uint8

// The things. Those before Operations are many: add the number of the CPU, the site
// or the patcher.
const (
	Registers  = Thing(0)              // of a CPU: what only itself knows
	Mail       = Registers + MaxCPUs   // of a CPU: interrupts asked for, its own references, whether it stands still, where it is
	Parked     = Mail + MaxCPUs        // of a CPU: the task that was preempted there
	Text       = Parked + MaxCPUs      // of a site
	Literal    = Text + MaxSites       // of a site
	Promised   = Literal + MaxSites    // of a site; the checks' bookkeeping
	Changing   = Promised + MaxSites   // of a site: the update begun last; likewise
	Place      = Changing + MaxSites   // of a patcher: how far its program is, and its store buffer
	Answers    = Place + MaxPatchers   // of a patcher: how many it waits for
	Operations = Answers + MaxPatchers // which ops may be called
	Batch      = Operations + 1        // what is published
	References = Operations + 2        // the counter that handlers share, where they do
	Arrived    = Operations + 3        // how many CPUs stand still, and how many are to
	Stopping   = Operations + 4        // who has the machine stopped
	Locks      = Operations + 5
	Window     = Operations + 6 // page tables: where patchers map text, and where they find its pages
	Flag       = Operations + 7 // what patchers tell each other
	Stores     = Operations + 8 // how many stores to text there were
	numThings  = Operations + 9
	_          = uint(64 - numThings) // they must fit into Things
)

// kinds are the things' words, and how many there are of each.
var kinds = [...]struct {
	first Thing
	word  string
}{
	{Registers, "registers of cpu"}, {Mail, "mailbox of cpu"}, {Parked, "task parked by cpu"}, {Text, "text of site"},
	{
		Literal,
		"literal of site",
	}, {Promised, "promise of site"}, {Changing, "update of site"}, {Place, "program of patcher"},
	{Answers, "answers to patcher"}, {Operations, "ops"}, {Batch, "published batch"}, {References, "shared references"},
	{Arrived, "count of CPUs that stand still"}, {Stopping, "stopped machine"}, {Locks, "locks"},
	{Window, "mapped page"}, {Flag, "flag"}, {Stores, "count of stores"},
}

// Kind is the thing without its number, and the number.
func (t Thing) Kind() (first Thing, n int) {
	i := len(kinds) - 1
	for kinds[i].first > t {
		i--
	}
	return kinds[i].first, int(t - kinds[i].first)
}

func (t Thing) String() string {
	first, n := t.Kind()
	i := slices.IndexFunc(kinds[:], func(k struct {
		first Thing
		word  string
	}) bool {
		return k.first == first
	})
	if first >= Operations {
		return kinds[i].word
	}
	return fmt.Sprintf("%s %d", kinds[i].word, n)
}

// CPU is the CPU that a thing belongs to; false where it belongs to none.
func (t Thing) CPU() (cpu int, ok bool) {
	first, n := t.Kind()
	return n, first <= Parked
}

// Things is a set of them.
type Things uint64

// Has tells whether a thing is in the set.
func (s Things) Has(t Thing) bool { return s>>t&1 != 0 }

// With is the set and one more.
func (s Things) With(t Thing) Things { return s | 1<<t }

// Each calls f with every thing of the set.
func (s Things) Each(f func(Thing)) {
	for ; s != 0; s &= s - 1 {
		f(Thing(bits.TrailingZeros64(uint64(s))))
	}
}

func (s Things) String() string {
	var names []string
	s.Each(func(t Thing) { names = append(names, t.String()) })
	return strings.Join(names, ", ")
}
