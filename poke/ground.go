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
		if f(&c); s.commons.CompareAndSwap(old, &c) {
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

// Attach implements Ground.
func (x *Executor) Attach(ops uint64) { x.Machine.SetOps(ops, cpus.CalledTracer) }

// Release implements Ground.
func (x *Executor) Release(ops uint64) { x.Machine.SetOps(ops, cpus.CalledFreed) }

// Lock implements Ground.
func (x *Executor) Lock(mu Mutex) (took bool) {
	if mu == HotplugLock && !x.Machine.HoldHotplug() {
		return false
	}
	var broken *cpus.Violation
	x.Shared.change(func(c *Commons) { took, broken = x.Shared.Lock(c, mu, x.ID, x.lease.CPU()) })
	x.report(broken)
	if mu == HotplugLock && !took {
		x.Machine.LetHotplug()
	}
	return took
}

// Unlock implements Ground.
func (x *Executor) Unlock(mu Mutex) {
	had := int(x.Shared.commons.Load().Held[mu]) == x.ID+1
	if x.Shared.change(func(c *Commons) { c.Unlock(mu, x.ID) }); mu == HotplugLock && had {
		x.Machine.LetHotplug()
	}
}

// Map implements Ground.
func (x *Executor) Map(site int) { x.Shared.change(func(c *Commons) { c.Map(site) }) }

// Raise implements Ground.
func (x *Executor) Raise() { x.Shared.change((*Commons).Raise) }

// Raised implements Ground.
func (x *Executor) Raised() bool { return x.Shared.commons.Load().Raised() }

// ReadEntry and ReadTable implement Ground.
func (x *Executor) ReadEntry() (below bool) {
	x.Shared.change(func(c *Commons) { below = c.Tables.ReadEntry(x.ID) })
	return below
}

// ReadTable is the other half.
func (x *Executor) ReadTable() {
	var broken *cpus.Violation
	x.Shared.change(func(c *Commons) { broken = x.Shared.Rules.ReadTable(c, x.ID, x.lease.CPU()) })
	x.report(broken)
}

// Reshape implements Ground.
func (x *Executor) Reshape(op Op) { x.Shared.change(func(c *Commons) { c.Tables.Reshape(op) }) }

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
