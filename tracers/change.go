// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"errors"
	"fmt"
	"slices"
)

// Report is what a change did: its steps, and how much work it was.
type Report struct {
	Steps  []Step  // in the order in which they were taken
	Passes []*Pass // update passes, in order

	ListChanges   int // ops put into the list or taken out of it
	Walked        int // records that the kernel's loops go over
	Compared      int // hash lookups for requested addresses before anything is done
	Hashes        int // hash tables allocated
	HashEntries   int // entries allocated
	HashCopied    int // of these, copies of entries that were there
	Regenerations int // BPF trampolines that are generated again because of a live patch
	CallTasks     int // call_rcu_tasks: later, the caller does not wait
	CallRCU       int // call_rcu: later
	Restored      int // sites written back after a failure
}

// Patches is how many sites all passes change.
func (r *Report) Patches() (n int) {
	for _, p := range r.Passes {
		n += len(p.Patches)
	}
	return n
}

// change is one change on its way: what it did, and how to take it back.
type change struct {
	c *Core
	Report
	touched []before
	undo    []func() error // in the order in which things were done
}

// before is a record as it was.
type before struct {
	rec   int
	flags Flags
	users []*Ops
}

// do makes a change and takes it back when it fails. A change inside another one belongs to that
// one, and is taken back by itself if it fails.
func (c *Core) do(f func(*change) error) (Report, error) {
	x := c.change
	if x != nil {
		x.mark()
		done := len(x.undo)
		err := f(x)
		if err != nil {
			err = errors.Join(err, x.takeBack(done))
		}
		return Report{}, err
	}
	x = &change{c: c}
	c.change = x
	err := f(x)
	if err != nil {
		err = errors.Join(err, x.takeBack(0))
	}
	c.change = nil
	if err == nil {
		c.release()
	}
	return x.Report, err
}

// later says how to take back what was just done. Records are put back in
// between, so that what follows may touch them again.
func (x *change) later(undo func()) {
	x.mark()
	x.undo = append(x.undo, func() error { undo(); return nil })
}

// touch remembers a record before its flags change.
func (x *change) touch(rec int) {
	x.touched = append(x.touched, before{rec, x.c.flags[rec], x.c.users[rec]})
}

// mark closes the run of records that were touched.
func (x *change) mark() {
	touched := x.touched
	if x.touched = nil; touched == nil {
		return
	}
	x.undo = append(x.undo, func() error {
		for _, b := range slices.Backward(touched) {
			x.c.flags[b.rec], x.c.users[b.rec] = b.flags, b.users
		}
		return nil
	})
}

// takeBack undoes everything down to some point, the last thing first. A site that
// cannot be written on the way back leaves the tracer dead, and the error says so.
func (x *change) takeBack(to int) error {
	if x.c.dead {
		return nil // the kernel's way: everything stays as it is
	}
	x.mark()
	var failed []error
	for _, undo := range slices.Backward(x.undo[to:]) {
		if err := undo(); err != nil {
			failed = append(failed, err)
		}
	}
	x.undo = x.undo[:to]
	if len(failed) > 0 {
		x.c.dead = true
		return fmt.Errorf("not everything could be taken back: %w", errors.Join(failed...))
	}
	return nil
}
