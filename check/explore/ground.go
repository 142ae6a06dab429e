// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// poke.Ground on plain words. poke.Executor is the live machine's.

// Store implements poke.Ground.
func (w *world) Store(site, off, n int, t isa.Text) {
	site, broken := w.m.rules.Lands(w.Commons, w.m.homes[w.actor], site, n, t)
	w.violate(broken)
	text := w.m.textIndex(site, w.Peek(site).Splice(off, n, t))
	if w.full = w.logged == w.m.layout.stores; w.full {
		return
	}
	w.log[w.logged] = store{uint8(site), text}
	w.logged++
	w.putOff(site)
}

// StoreLiteral implements poke.Ground.
func (w *world) StoreLiteral(site int, ops uint64) { w.literal[site] = ops }

// Unsettle implements poke.Ground.
func (w *world) Unsettle(site int) { w.settled[site] = w.settled[site].TakenBack() }

// Begin implements poke.Ground.
func (w *world) Begin(site int, c cpus.Change) {
	if len(w.m.changes[site]) > 1 {
		w.begun[site] = uint8(w.m.changeIndex(site, c))
	}
}

// Settle implements poke.Ground.
func (w *world) Settle(site int, want isa.Text) {
	var room [1]cpus.Version
	newest, _ := w.Window(site, w.Seq(), room[:0])
	w.settled[site] = w.settled[site].Of(newest[0], want, w.Seq())
}

// SetOps implements poke.Ground.
func (w *world) SetOps(ops uint64, o cpus.Outcome) { w.ops = w.m.table.Set(w.ops, ops, o) }

// Share implements poke.Ground.
func (w *world) Share(a poke.Access) bool {
	if a.Takes(poke.HotplugLock) && w.hotplugs() {
		return false
	}
	yes, broken := w.m.rules.Share(&w.Commons, a, w.actor, w.m.homes[w.actor])
	w.violate(broken)
	return yes
}

// Publish implements poke.Ground.
func (w *world) Publish(step int, patches []poke.Patch, _ bool) {
	w.noteRefs()
	w.violate(w.m.rules.Overflows(w.m.homes[w.actor], patches))
	w.published = uint8(w.m.batches[w.actor][step].number)
	w.eachRef(func(r *int8) { *r = 1 })
}

func (w *world) eachRef(f func(r *int8)) {
	if w.m.Refs != int3.PerCPU {
		f(w.ref(0))
		return
	}
	for i := range w.m.Roles {
		f(w.ref(i))
	}
}

// Unpublish implements poke.Ground.
func (w *world) Unpublish() {
	w.noteRefs()
	w.eachRef(func(r *int8) { *r-- })
}

// Drained implements poke.Ground.
func (w *world) Drained() bool {
	drained := true
	w.eachRef(func(r *int8) { drained = drained && *r == 0 })
	return drained
}

// Clear implements poke.Ground.
func (w *world) Clear() { w.published = 0 }

// Send implements poke.Ground. A grace period also waits for tasks that are
// preempted.
func (w *world) Send(c cpus.Cause, lazy bool) {
	w.noteSend()
	w.left[w.actor] = w.send(c, lazy)
	if c != cpus.Quiesce {
		return
	}
	for i := range w.m.Roles {
		w.writes(i)
		if t := &w.parked[i]; t.There() && !t.Quiet {
			t.Quiet, t.Quiesce = true, w.ticket(w.actor, i)
			w.left[w.actor]++
		}
	}
}

// send leaves a request with every CPU but the sender's.
func (w *world) send(c cpus.Cause, lazy bool) (targets int8) {
	for i := range w.m.Roles {
		switch {
		case i == w.m.homes[w.actor] || w.m.Code.Path.ComesUp && w.own(i).Offline(w.m.Code):
			continue
		case lazy:
			var out bool
			if w.space[i], out = w.space[i].LeaveOut(); out {
				w.stopped[i] = w.stopped[i] || c == cpus.Stop
				continue
			}
		}
		targets++
		for k := range w.box[i] {
			if w.box[i][k] == 0 {
				w.box[i][k] = request(1+w.actor) | request(slices.Index(requestCauses[:], c))<<bitsFrom
				break
			}
		}
	}
	return targets
}

// Answered implements poke.Ground.
func (w *world) Answered() bool { return w.left[w.actor] == 0 }

// StopMachine implements poke.Ground.
func (w *world) StopMachine(lazy bool) bool {
	if w.stopping != 0 {
		return false
	}
	w.noteSend()
	w.stopping, w.arrived = int8(w.actor+1), 0
	w.left[w.actor] = w.send(cpus.Stop, lazy)
	w.arriving = w.left[w.actor]
	return true
}

// Stopped implements poke.Ground.
func (w *world) Stopped() bool { return w.Answered() && w.arrived == w.arriving }

// ResumeMachine implements poke.Ground.
func (w *world) ResumeMachine() {
	for i := range w.m.Roles {
		w.writes(i)
		w.stopped[i] = false
	}
	w.stopping, w.arrived, w.arriving = 0, 0, 0
}

// SyncSelf implements poke.Ground.
func (w *world) SyncSelf() {
	home := w.m.homes[w.actor]
	w.writes(home)
	w.cpu[home].Synced = w.Seq()
}

// notes are the parts of the machine that a step has written, CPUs one bit each. Every write
// to what CPUs and patchers share notes itself: the search packs no more than that.
type notes struct {
	cpus   uint // a CPU's own words: its state, its requests and place, its parked task
	shared bool // anything else
}

// allWritten is more than any step writes.
var allWritten = notes{^uint(0), true}

func (n *notes) writes(cpu int) { n.cpus |= 1 << cpu }
func (n *notes) shares()        { n.shared = true }

// written are the words of a state that may have changed: those of CPUs, one bit each, and
// what all share.
func (w *world) written() (own uint, shared bool) {
	return w.notes.cpus & (1<<len(w.m.Roles) - 1), w.notes.shared
}

// noteAction notes what an action writes before anybody makes an access.
func (w *world) noteAction(a action) {
	switch a.kind {
	case stepPatcher, drain: // what it does to a CPU is noted there
		w.shares()
	case begin:
		w.shares()
		w.writes(w.m.homes[a.who])
	case unpark:
		w.writes(int(a.arg))
		fallthrough
	default:
		w.writes(int(a.who))
	}
}

// noteRef notes a change of the references that a handler on a CPU looks at: its own, or those that all share, which stand
// in the words of the first patcher's CPU.
func (w *world) noteRef(cpu int) {
	if w.m.Refs != int3.PerCPU {
		cpu = w.m.homes[0]
	}
	w.writes(cpu)
}

// noteRefs notes a change of every CPU's.
func (w *world) noteRefs() {
	for i := range w.m.Roles {
		w.noteRef(i)
	}
}

// noteSend notes that every other CPU is asked for something, and counted.
func (w *world) noteSend() {
	for i := range w.m.Roles {
		if i != w.m.homes[w.actor] {
			w.writes(i)
		}
	}
	w.shares()
}
