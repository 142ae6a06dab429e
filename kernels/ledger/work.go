// SPDX-License-Identifier: Apache-2.0

package ledger

import "github.com/textpoke/textpoke/tracers"

// Work is what a kernel does besides sending interrupts when somebody attaches or detaches.
type Work struct {
	Images      int // BPF trampolines generated
	Patches     int // sites changed
	Walked      int // records looked at, each time one is
	Copied      int // entries of hashes made
	Allocations int // of memory, entries included
	ListChanges int // of the list of ops
	Waits       int // until every task has scheduled (synchronize_rcu_tasks), one after the other
}

// hashParts is what a hash takes beside its entries: struct ftrace_hash and its
// buckets (alloc_ftrace_hash, kernel/trace/ftrace.c).
const hashParts = 2

// add adds the work of a change.
func (w *Work) add(rep *tracers.Report) {
	images := rep.Count(tracers.StepImage)
	w.Images += images
	w.Patches += rep.Patches()
	w.Walked += rep.Walked
	w.Copied += rep.HashEntries
	w.Allocations += images + rep.Count(tracers.StepTrampoline) + rep.HashEntries + hashParts*rep.Hashes
	w.ListChanges += rep.ListChanges
	w.Waits += rep.Count(tracers.StepTasks)
}
