// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// The accesses of patchers, noted.

// Store implements poke.Ground; so do the others here. With pages that are mapped
// it may go to another site.
func (r *recorder) Store(site, off, n int, t isa.Text) {
	r.read(Window, 0)
	if at := int(r.w.Mapped) - 1; at >= 0 {
		r.change(Text, at)
	} else {
		r.change(Text, site)
	}
	r.change(Stores, 0)
	r.w.Store(site, off, n, t)
}

func (r *recorder) StoreLiteral(site int, ops uint64) {
	r.write(Literal, site)
	r.w.StoreLiteral(site, ops)
}

func (r *recorder) Unsettle(site int) {
	r.change(Promised, site)
	r.w.Unsettle(site)
}

func (r *recorder) Begin(site int, c cpus.Change) {
	if len(r.w.m.changes[site]) > 1 {
		r.write(Changing, site)
	}
	r.w.Begin(site, c)
}

func (r *recorder) Settle(site int, want isa.Text) {
	r.read(Text, site)
	r.read(Stores, 0)
	r.change(Promised, site)
	r.w.Settle(site, want)
}

func (r *recorder) Attach(ops uint64) {
	r.change(Operations, 0)
	r.w.Attach(ops)
}

func (r *recorder) Release(ops uint64) {
	r.change(Operations, 0)
	r.w.Release(ops)
}

func (r *recorder) Lock(mu poke.Mutex) bool {
	r.online()
	r.change(Locks, 0)
	return r.w.Lock(mu)
}

func (r *recorder) Unlock(mu poke.Mutex) {
	r.change(Locks, 0)
	r.w.Unlock(mu)
}

func (r *recorder) Map(site int) {
	r.write(Window, 0)
	r.w.Map(site)
}

func (r *recorder) Raise() {
	r.write(Flag, 0)
	r.w.Raise()
}

func (r *recorder) Raised() bool {
	r.read(Flag, 0)
	return r.w.Raised()
}

func (r *recorder) Publish(step int, patches []poke.Patch, undo bool) {
	r.write(Batch, 0)
	r.eachRef(r.write)
	r.w.Publish(step, patches, undo)
}

func (r *recorder) Unpublish() {
	r.eachRef(r.add)
	r.w.Unpublish()
}

func (r *recorder) Drained() bool {
	r.eachRef(r.read)
	return r.w.Drained()
}

func (r *recorder) Clear() {
	r.write(Batch, 0)
	r.w.Clear()
}

func (r *recorder) Send(c cpus.Cause, lazy bool) {
	r.online()
	r.send()
	if c == cpus.Quiesce {
		for i := range r.w.m.Roles {
			r.change(Parked, i)
		}
	}
	r.w.Send(c, lazy)
}

// send notes that every other CPU is asked for something, and counted.
func (r *recorder) send() {
	for i := range r.w.m.Roles {
		if i != r.w.m.homes[r.w.actor] {
			r.change(Mail, i)
		}
	}
	r.write(Answers, r.w.actor)
}

func (r *recorder) Answered() bool {
	r.read(Answers, r.w.actor)
	return r.w.Answered()
}

func (r *recorder) StopMachine(lazy bool) bool {
	r.online()
	r.change(Stopping, 0)
	if r.w.stopping == 0 {
		r.send()
		r.write(Arrived, 0)
	}
	return r.w.StopMachine(lazy)
}

func (r *recorder) Stopped() bool {
	r.read(Answers, r.w.actor)
	r.read(Arrived, 0)
	return r.w.Stopped()
}

func (r *recorder) ResumeMachine() {
	for i := range r.w.m.Roles {
		r.change(Mail, i)
	}
	r.write(Stopping, 0)
	r.write(Arrived, 0)
	r.w.ResumeMachine()
}

func (r *recorder) SyncSelf() {
	r.read(Stores, 0)
	r.change(Registers, r.w.m.homes[r.w.actor])
	r.w.SyncSelf()
}
