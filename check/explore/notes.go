// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/textpoke/textpoke/int3"

// notes are the parts of the machine that a step has written, CPUs one bit each. Every write
// to what CPUs and patchers share notes itself: the search packs no more than that.
type notes struct {
	cpus    uint // what only a CPU itself knows
	mailed  uint // others write these of a CPU: requests, its place, its parked task
	counter bool // the counter of references that all CPUs share
	shared  bool // anything else
}

// allWritten is more than any step writes.
var allWritten = notes{^uint(0), ^uint(0), true, true}

func (n *notes) itself(cpu int) { n.cpus |= 1 << cpu }
func (n *notes) mail(cpu int)   { n.mailed |= 1 << cpu }
func (n *notes) shares()        { n.shared = true }

// written are the words of a state that may have changed: those of CPUs, one bit each, and
// what all share.
func (w *world) written() (own uint, shared bool) {
	own = (w.notes.cpus | w.notes.mailed) & (1<<len(w.m.Roles) - 1)
	if w.notes.counter {
		own |= 1 << w.m.homes[0]
	}
	return own, w.notes.shared
}

// onlyItself tells whether a CPU has changed nothing but what only itself knows.
func (n *notes) onlyItself(cpu int) bool { return *n == notes{cpus: 1 << cpu} }

// noteAction notes what an action writes before anybody makes an access.
func (w *world) noteAction(a action) {
	who := int(a.who)
	switch a.kind {
	case skip, attend, tick, nmi:
		w.itself(who)
	case stepPatcher, drain: // what it does to a CPU is noted there
		w.shares()
	case begin:
		w.shares()
		if home := w.m.homes[who]; w.cpu[home].Preemptible() {
			w.itself(home)
		} else {
			w.notePark(home)
		}
	case park:
		w.notePark(who)
	case unpark:
		w.itself(who)
		w.mail(int(a.arg))
	}
}

func (w *world) notePark(cpu int) {
	w.itself(cpu)
	w.mail(cpu)
}

// noteRef notes a change of the references that a handler on a CPU looks at.
func (w *world) noteRef(cpu int) {
	if w.m.Refs == int3.PerCPU {
		w.mail(cpu)
		return
	}
	w.notes.counter = true
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
			w.mail(i)
		}
	}
	w.shares()
}
