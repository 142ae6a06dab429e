// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"sync/atomic"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
)

// Shared is what patchers of a live machine share besides the machine: Commons that
// each exchanges for others at once, whoever else does so at the same time. Reading is
// one load.
type Shared struct {
	Rules
	commons atomic.Pointer[Commons]
}

// NewShared has every lock free and nothing mapped.
func NewShared(r Rules) *Shared {
	s := &Shared{Rules: r}
	s.commons.Store(&Commons{})
	return s
}

// change exchanges the commons; f may be called several times.
func (s *Shared) change(f func(c *Commons)) {
	for {
		old := s.commons.Load()
		c := *old
		if f(&c); c == *old || s.commons.CompareAndSwap(old, &c) {
			return
		}
	}
}

// The Ground of the live machine: what follows, and what the machine's text and the
// handlers' table do by themselves.

// Store implements Ground.
func (x *Executor) Store(site, off, n int, t isa.Text) {
	site, broken := x.Shared.Lands(*x.Shared.commons.Load(), x.lease.CPU(), site, n, t)
	x.report(broken)
	x.Text.Store(site, off, n, t)
}

// report tells the machine of what is broken, if anything is.
func (x *Executor) report(broken *cpus.Violation) {
	if broken != nil {
		x.Machine.Report(*broken)
	}
}

// SetOps implements Ground.
func (x *Executor) SetOps(ops uint64, o cpus.Outcome) { x.Machine.SetOps(ops, o) }

// Share implements Ground. The lock of hotplug is the machine's too: it was not taken after all, or is given back.
func (x *Executor) Share(a Access) (yes bool) {
	if a.Takes(HotplugLock) && !x.Machine.HoldHotplug() {
		return false
	}
	var broken *cpus.Violation
	x.Shared.change(func(c *Commons) { yes, broken = x.Shared.Share(c, a, x.ID, x.lease.CPU()) })
	x.report(broken)
	if a.about(HotplugLock) && yes == (a.Op == Unlock) {
		x.Machine.LetHotplug()
	}
	return yes
}

// Publish implements Ground.
func (x *Executor) Publish(_ int, patches []Patch, undo bool) {
	x.report(x.Shared.Overflows(x.lease.CPU(), patches))
	x.Table.Publish(Batch(x.Machine.Code(), x.Lookup, x.Filling, patches, undo))
}

// Send implements Ground.
func (x *Executor) Send(c cpus.Cause, lazy bool) { x.sender.Send(x.lease.CPU(), c, lazy) }

// Answered implements Ground.
func (x *Executor) Answered() bool { return x.sender.Answered() }

// StopMachine implements Ground.
func (x *Executor) StopMachine(lazy bool) bool {
	x.stopped = x.sender.StopMachine(x.lease.CPU(), lazy)
	return x.stopped
}

// Stopped implements Ground.
func (x *Executor) Stopped() bool { return x.sender.Stopped() }

// ResumeMachine implements Ground.
func (x *Executor) ResumeMachine() {
	x.sender.ResumeMachine()
	x.stopped = false
}

// SyncSelf implements Ground.
func (x *Executor) SyncSelf() { x.lease.Sync() }
