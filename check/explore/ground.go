// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// poke.Ground on plain words. poke.Executor is the live machine's.

// plans are what the programs do.
func (m *Model) plans() (plans [][]poke.Step) {
	for _, p := range m.Programs {
		plans = append(plans, p.Plan)
	}
	return plans
}

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
	if a.Takes(poke.HotplugLock) && w.comesUp() {
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
		w.mail(i)
		if t := &w.parked[i]; t.There() && !t.Owes {
			t.Owes, t.Quiesce = true, w.ticket(w.actor, i)
			w.left[w.actor]++
		}
	}
}

// send leaves a request with every CPU but the sender's.
func (w *world) send(c cpus.Cause, lazy bool) (targets int8) {
	for i := range w.m.Roles {
		switch {
		case i == w.m.homes[w.actor] || w.offline(i):
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
				w.box[i][k] = requestOf(w.actor, c)
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
		w.mail(i)
		w.stopped[i] = false
	}
	w.stopping, w.arrived, w.arriving = 0, 0, 0
}

// SyncSelf implements poke.Ground.
func (w *world) SyncSelf() {
	home := w.m.homes[w.actor]
	w.itself(home)
	w.cpu[home].Synced = w.Seq()
}
