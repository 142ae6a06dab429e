package explore

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// What patchers work on: poke.Ground on plain words. poke.Executor says the same
// for the live machine.

// Store implements poke.Ground.
func (w *world) Store(site, off, n int, t isa.Text) {
	if w.mapped != 0 && int(w.mapped)-1 != site {
		other := int(w.mapped) - 1
		w.violate(cpus.Violation{
			Property: cpus.BrokenSite, CPU: w.m.homes[w.actor], Site: other, Addr: w.m.Code.Sites[other], Bytes: t.Format(n),
			Why: fmt.Sprintf("another patcher has mapped this site's page meanwhile: the store for site %d goes here", site),
		})
		site = other
	}
	text := w.m.textIndex(site, w.Peek(site).Splice(off, n, t))
	w.log[w.logged] = store{uint8(site), text}
	w.logged++
}

// StoreLiteral implements poke.Ground.
func (w *world) StoreLiteral(site int, ops uint64) { w.literal[site] = ops }

// Unsettle implements poke.Ground.
func (w *world) Unsettle(site int) { w.settled[site] = w.settled[site].TakenBack() }

// Settle implements poke.Ground; see cpus.Text.Settle.
func (w *world) Settle(site int, want isa.Text) {
	seq, text := cpus.Seq(1), w.m.texts[site][w.base[site]]
	for i := w.logged - 1; i >= 0; i-- {
		if int(w.log[i].site) == site {
			seq, text = cpus.Seq(i+2), w.m.texts[site][w.log[i].text]
			break
		}
	}
	if text != want {
		seq = w.Seq() + 1
	}
	w.settled[site] = w.settled[site].With(seq)
}

// Attach and Release implement poke.Ground.
func (w *world) Attach(ops uint64)  { w.setOps(ops, cpus.CalledTracer) }
func (w *world) Release(ops uint64) { w.setOps(ops, cpus.CalledFreed) }

func (w *world) setOps(ops uint64, o cpus.Outcome) {
	for i, a := range w.m.ops {
		if a == ops && a != w.m.NopOps {
			w.ops[i] = o
		}
	}
}

// Lock implements poke.Ground. Taking two locks in an order in which another
// program takes them the other way round is a violation, whether or not it hangs
// this time.
func (w *world) Lock(mu poke.Mutex) bool {
	if w.held[mu] != 0 {
		return false
	}
	for h := range poke.Mutex(poke.NumMutexes) {
		if int(w.held[h]) == w.actor+1 && w.m.locksBoth(mu, h) {
			w.violate(cpus.Violation{
				Property: cpus.LockOrder, CPU: w.m.homes[w.actor],
				Why: fmt.Sprintf("takes %s while it holds %s; elsewhere %s is taken while %s is held", mu, h, h, mu),
			})
		}
	}
	w.held[mu] = int8(w.actor + 1)
	return true
}

// locksBoth tells whether some program takes second while it holds first.
func (m *Model) locksBoth(first, second poke.Mutex) bool {
	for _, p := range m.Programs {
		holds := false
		for _, s := range p.Plan {
			switch {
			case s.Op == poke.Lock && s.Mutex == second && holds:
				return true
			case s.Mutex != first:
			case s.Op == poke.Lock:
				holds = true
			case s.Op == poke.Unlock:
				holds = false
			}
		}
	}
	return false
}

// Unlock implements poke.Ground.
func (w *world) Unlock(mu poke.Mutex) {
	if int(w.held[mu]) == w.actor+1 {
		w.held[mu] = 0
	}
}

// Map implements poke.Ground.
func (w *world) Map(site int) { w.mapped = int8(site + 1) }

// Raise and Raised implement poke.Ground.
func (w *world) Raise()       { w.raised = true }
func (w *world) Raised() bool { return w.raised }

// Publish implements poke.Ground; see poke.Executor.Publish.
func (w *world) Publish(_ []poke.Patch, _ bool) {
	b := w.m.batches[w.actor][w.patcher[w.actor].At]
	if w.m.Slots > 0 && b.size > w.m.Slots {
		w.violate(cpus.Violation{
			Property: cpus.Overflow, CPU: w.m.homes[w.actor], Site: int(b.last.Site), Addr: b.last.Addr,
			Bytes: b.last.New.Format(w.m.Code.Len),
			Why:   fmt.Sprintf("%d patches in a vector of %d slots: the rest is written behind its end", b.size, w.m.Slots),
		})
	}
	w.published = uint8(b.number)
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
func (w *world) Unpublish() { w.eachRef(func(r *int8) { *r-- }) }

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
	w.left[w.actor] = w.send(c, lazy)
	if c != cpus.Quiesce {
		return
	}
	for i := range w.m.Roles {
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
		case i == w.m.homes[w.actor]:
			continue
		case lazy && w.space[i]&inUser != 0:
			w.space[i] |= owes
			continue
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
func (w *world) StopMachine() bool {
	if w.stopping != 0 {
		return false
	}
	w.stopping, w.arrived = int8(w.actor+1), 0
	w.left[w.actor] = w.send(cpus.Stop, false)
	w.arriving = w.left[w.actor]
	return true
}

// Stopped implements poke.Ground.
func (w *world) Stopped() bool { return w.Answered() && w.arrived == w.arriving }

// ResumeMachine implements poke.Ground.
func (w *world) ResumeMachine() {
	for i := range w.m.Roles {
		w.stopped[i] = false
	}
	w.stopping, w.arrived, w.arriving = 0, 0, 0
}

// SyncSelf implements poke.Ground.
func (w *world) SyncSelf() { w.cpu[w.m.homes[w.actor]].Synced = w.Seq() }
