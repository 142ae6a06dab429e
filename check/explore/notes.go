// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/textpoke/textpoke/int3"

// notes are what a step has read and written, and the counters that it has added to
// without looking. Every access to what CPUs and patchers share notes itself: the search
// packs no more than what was written, and Examine holds the notes against what happened.
type notes struct{ reads, writes, adds Things }

func (n *notes) read(t Thing, i int)  { n.reads = n.reads.With(t + Thing(i)) }
func (n *notes) write(t Thing, i int) { n.writes = n.writes.With(t + Thing(i)) }
func (n *notes) add(t Thing, i int)   { n.adds = n.adds.With(t + Thing(i)) }

// change is for what a step reads and writes, or writes a part of.
func (n *notes) change(t Thing, i int) {
	n.read(t, i)
	n.write(t, i)
}

// allThings is more than any step writes.
const allThings = Things(1)<<numThings - 1

// of are the things of one kind, one bit each.
func (s Things) of(first Thing, n int) uint { return uint(s>>first) & (1<<n - 1) }

// written are the words of a state that may have changed: those of CPUs, one bit each, and
// what all share.
func (w *world) written() (own uint, shared bool) {
	all := w.writes | w.adds
	n := len(w.m.Roles)
	own = all.of(Registers, n) | all.of(Mail, n) | all.of(Parked, n)
	if all.Has(References) { // where all share a counter
		own |= 1 << w.m.homes[0]
	}
	return own, all.inShared()
}

// inShared tells whether one of the things lies in the words that belong to no CPU.
func (s Things) inShared() bool { return s&^(1<<References)>>Text != 0 }

// onlyItself tells whether a CPU has changed nothing but what only itself knows.
func (n *notes) onlyItself(cpu int) bool {
	return n.writes|n.adds == Things(0).With(Registers+Thing(cpu))
}

// noteAction notes what an action reads and writes before anybody makes an access.
func (w *world) noteAction(a action) {
	who := int(a.who)
	switch a.kind {
	case skip, attend, tick, nmi:
		w.noteStep(who)
	case afresh:
		w.noteStep(who)
		w.read(Stores, 0)
	case stepPatcher:
		if w.m.among && w.patcher[who].Between() {
			w.read(Operations, 0)
		}
		w.change(Place, who)
		w.read(Registers, w.m.homes[who])
	case begin:
		w.change(Place, who)
		w.change(Registers, w.m.homes[who])
		if !w.cpu[w.m.homes[who]].Preemptible() {
			w.notePark(w.m.homes[who])
		}
	case drain:
		w.change(Place, who)
	case park:
		w.notePark(who)
	case unpark:
		w.change(Registers, who)
		w.change(Parked, int(a.arg))
	}
}

// noteStep notes a step of a CPU, whose own task waits while a patcher sits there.
func (w *world) noteStep(cpu int) {
	w.change(Registers, cpu)
	w.reads |= w.m.seats[cpu]
}

func (w *world) notePark(cpu int) {
	w.change(Registers, cpu)
	w.change(Parked, cpu)
	w.change(Mail, cpu)
}

// noteRef notes a change of the references that a handler on a CPU looks at.
func (w *world) noteRef(note func(*notes, Thing, int), cpu int) {
	if w.m.Refs == int3.PerCPU {
		w.change(Mail, cpu) // one part of it
		return
	}
	note(&w.notes, References, 0)
}

func (w *world) noteEachRef(note func(*notes, Thing, int)) {
	for i := range w.m.Roles {
		w.noteRef(note, i)
	}
}

// noteOnline notes that who is online is read: every CPU's own way tells.
func (w *world) noteOnline() {
	if !w.m.Code.Path.ComesUp() {
		return
	}
	for i := range w.m.Roles {
		w.read(Registers, i)
	}
}

// noteSend notes that every other CPU is asked for something, and counted.
func (w *world) noteSend() {
	for i := range w.m.Roles {
		if i != w.m.homes[w.actor] {
			w.change(Mail, i)
		}
	}
	w.write(Answers, w.actor)
}
