// SPDX-License-Identifier: Apache-2.0

package attachcost

import (
	"errors"
	"fmt"
)

// Cause is what a round of interrupts is for.
type Cause uint8

// The causes.
const (
	Records   Cause = iota // the sites themselves
	EntryCall              // the calls in ftrace_caller and ftrace_regs_caller
	Order                  // ftrace_sync_ipi: what the entries load
	Image                  // a trampoline is made: a flush of TLBs or instruction caches
	OldImage               // a trampoline is cut off
	OwnEntry               // an ops' own trampoline is made, freed or patched

	NumCauses = int(OwnEntry) + 1
)

var causeNames = [...]string{"records", "entry-call", "order", "image", "old-image", "own-entry"}

func (c Cause) String() string { return causeNames[c] }

// Counts is what one attach or detach of many functions takes.
type Counts struct {
	Functions   int64 // sites changed
	Calls       int64 // of the interface
	Ops         int64 // objects that functions are attached through
	Images      int64 // trampolines
	Rounds      [NumCauses]int64
	SiteStores  int64 // to sites and their literals
	Pokes       int64 // stores elsewhere, each with a round of its own
	Walked      int64 // records looked at, each time one is
	Copied      int64 // entries of hashes made
	Allocations int64
	ListChanges int64 // of the list of ops
	Waits       int64 // until every task has scheduled (synchronize_rcu_tasks), one after the other
}

// AllRounds is the sum over causes.
func (c *Counts) AllRounds() (n int64) {
	for _, r := range c.Rounds {
		n += r
	}
	return n
}

// slots is TP_VEC_MAX: patches of one batch.
const slots = 256

// global is what the common entries call.
type global uint8

const (
	stub global = iota // nobody is attached
	own                // the function of the only ops, which is static
	list               // the list function
)

// operation is one attach or detach that is being counted.
type operation struct {
	Counts
	k       *Kernel
	w       Way
	total   int64  // records
	patched global // what the entries call at present
	holding int64  // functions attached at present
}

// Attach counts attaching to the first n of so many records, in the order in which
// the kernel walks them, which is that of addresses: no batch is closed early.
// Nothing else is attached before.
func Attach(k *Kernel, w Way, n, total int64) (Counts, error) {
	c, err := begin(k, w, n, total)
	if err != nil {
		return Counts{}, err
	}
	m := w.calls(n)
	for j := range m {
		c.attach(j*n/m, (j+1)*n/m)
	}
	return c.Counts, nil
}

// Detach counts detaching what Attach has attached, the first ones first.
func Detach(k *Kernel, w Way, n, total int64) (Counts, error) {
	c, err := begin(k, w, n, total)
	if err != nil {
		return Counts{}, err
	}
	c.holding, c.patched = n, list
	if c.shared() {
		c.patched = own
	}
	m := w.calls(n)
	for j := range m {
		c.detach(j*n/m, (j+1)*n/m)
	}
	return c.Counts, nil
}

func begin(k *Kernel, w Way, n, total int64) (*operation, error) {
	if k == nil {
		return nil, errors.New("attachcost: no kernel")
	}
	if err := w.In(k); err != nil {
		return nil, err
	}
	if n < 1 || n > total {
		return nil, fmt.Errorf("%d functions of %d records", n, total)
	}
	c := &operation{k: k, w: w, total: total}
	c.Functions, c.Calls, c.Ops, c.Images = n, w.calls(n), w.calls(n), w.images(n)
	if c.shared() {
		c.Ops = 1
	}
	return c, nil
}

// shared tells whether the ops is static and there for good.
func (c *operation) shared() bool {
	if c.w.Direct {
		return c.k.SharedDirectOps
	}
	return c.k.SharedProbeOps
}

// images is how many trampolines so many functions of one call have.
func (c *operation) images(functions int64) int64 {
	switch {
	case c.w.Images < 0:
		return functions
	case c.w.Images == 0:
		return 0
	}
	return 1
}

// attach is one call of the interface, for records from up to to.
func (c *operation) attach(from, to int64) {
	g, first := to-from, c.holding == 0
	made := c.images(g)
	c.Rounds[Image] += made * c.k.Image
	c.Allocations += made
	if !c.w.Direct {
		c.Copied += g // the filter
		if c.k.SharedProbeOps {
			c.poke(OwnEntry, c.k.ProbeAimed)
		} else {
			c.Rounds[OwnEntry] += c.k.ProbeMade
		}
	} else {
		c.hashes(c.holding + g)
		if !c.shared() {
			c.Copied += g // its own filter
		}
		c.Walked += c.total // who else may change where the function goes on (__ftrace_hash_update_ipmodify)
	}
	if c.shared() && !first {
		c.Walked += from // the old filter's records, up to the last one (ftrace_hash_rec_disable)
	} else {
		c.ListChanges++
		if !c.shared() {
			c.Allocations++ // the ops
		}
		c.retarget(c.function())
	}
	c.Walked += to // the new filter's, likewise
	c.update(g)
	c.holding += g
}

// hashes makes the tables anew that so many entries of direct calls are in.
func (c *operation) hashes(entries int64) {
	c.Copied += c.k.DirectEntries * entries
	c.Allocations += c.k.DirectEntries * (entries + hashParts)
}

// hashParts is what a hash takes beside its entries: struct ftrace_hash and its
// buckets (alloc_ftrace_hash).
const hashParts = 2

// detach is one call of the interface, for records from up to to.
func (c *operation) detach(from, to int64) {
	g := to - from
	c.holding -= g
	last := c.holding == 0
	c.poke(OldImage, c.images(g)*c.k.OldImage)
	if c.w.Direct {
		c.Walked += c.total
	}
	if c.w.Direct && c.shared() {
		c.hashes(c.holding)
	}
	if c.shared() {
		end := c.Functions // the last record of the old filter, and of the new one
		c.Walked += end
		if !last {
			c.Walked += end
		}
	} else {
		c.Walked += to
		c.Waits++
	}
	if last || !c.shared() {
		c.ListChanges++
	}
	if last {
		c.retarget(stub)
		c.Walked += c.total // whether no record has a flag left (ftrace_shutdown)
	}
	if !c.w.Direct && !c.shared() {
		c.Rounds[OwnEntry] += c.k.ProbeFreed
	}
	c.update(g)
}

// function is what the common entries call while functions are attached: the list
// function if any ops is dynamic (update_ftrace_function).
func (c *operation) function() global {
	if c.shared() {
		return own
	}
	return list
}

// retarget lets the common entries call to: the list function first, then the final
// one (ftrace_modify_all_code, steps 1 and 3). Nothing happens when it is what
// they call.
func (c *operation) retarget(to global) {
	if to == c.patched {
		return
	}
	if c.patched != list {
		c.poke(EntryCall, c.k.CallUpdate)
		c.patched = list
	}
	if to != list {
		c.Rounds[Order] += c.k.OrderSync
		c.poke(EntryCall, c.k.CallUpdate)
		c.patched = to
	}
}

// poke is rounds that each have one store before them.
func (c *operation) poke(cause Cause, rounds int64) {
	c.Rounds[cause] += rounds
	c.Pokes += rounds
}

// update changes the sites of so many records in one pass.
func (c *operation) update(g int64) {
	c.Rounds[Records] += c.k.PerBatch*((g+slots-1)/slots) + c.k.PerRecord*g + c.k.PerUpdate
	c.SiteStores += c.k.Stores * g
	c.Walked += c.k.Replace * c.total
}
