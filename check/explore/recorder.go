// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// recorder is a world whose steps' accesses are noted. It implements cpus.Shared and
// poke.Ground, method by method, so that one more access does not compile unnoted.
type recorder struct {
	w *world
	// What the step so far has read and written, and the counters that it has added to
	// without looking.
	reads, writes, adds Things
}

func newRecorder(m *Model) *recorder {
	r := &recorder{w: newWorld(m)}
	r.w.shared, r.w.ground = r, r
	return r
}

func (r *recorder) read(t Thing, n int)  { r.reads = r.reads.With(t + Thing(n)) }
func (r *recorder) write(t Thing, n int) { r.writes = r.writes.With(t + Thing(n)) }
func (r *recorder) add(t Thing, n int)   { r.adds = r.adds.With(t + Thing(n)) }

// change is for what a step reads and writes, or writes a part of.
func (r *recorder) change(t Thing, n int) {
	r.read(t, n)
	r.write(t, n)
}

// act makes an action happen. What the world itself reads to make it, it notes here.
func (r *recorder) act(a action, ch cpus.Chooser) {
	r.reads, r.writes, r.adds = 0, 0, 0
	w, who := r.w, int(a.who)
	switch a.kind {
	case stepCPU, skip, attend, afresh, tick, nmi:
		r.change(Registers, who)
		for i := range w.m.Programs {
			if w.m.homes[i] == who { // its own task waits while the patcher sits there
				r.read(Place, i)
			}
		}
		if a.kind == afresh {
			r.read(Stores, 0)
		}
	case stepPatcher:
		if w.m.among && w.patcher[who].Between() {
			r.read(Operations, 0)
		}
		r.change(Place, who)
		r.read(Registers, w.m.homes[who])
	case begin:
		r.change(Place, who)
		r.change(Registers, w.m.homes[who])
		if !w.cpu[w.m.homes[who]].Preemptible() {
			r.park(w.m.homes[who])
		}
	case drain:
		r.change(Place, who)
	case park:
		r.park(who)
	case unpark:
		r.change(Registers, who)
		r.change(Parked, int(a.arg))
	}
	sat := w.sat
	w.found, w.event, w.waits = nil, cpus.Nothing, false
	w.act(a, ch)
	if w.sat != sat && w.sat[who] != sitting {
		r.change(Registers, w.m.homes[who])
	}
}

func (r *recorder) park(cpu int) {
	r.change(Registers, cpu)
	r.change(Parked, cpu)
	r.change(Mail, cpu)
}

// ref notes a change of the references that a handler on a CPU looks at.
func (r *recorder) ref(note func(Thing, int), cpu int) {
	if r.w.m.Refs == int3.PerCPU {
		r.change(Mail, cpu) // one part of it
		return
	}
	note(References, 0)
}

func (r *recorder) eachRef(note func(Thing, int)) {
	for i := range r.w.m.Roles {
		r.ref(note, i)
	}
}

// Enter implements cpus.Handler; so do the next two.
func (r *recorder) Enter(cpu int) bool {
	r.ref(r.read, cpu)
	if r.w.m.Refs != int3.NoRef {
		r.ref(r.write, cpu)
	}
	return r.w.Enter(cpu)
}

// Find reads the batch, which is whole.
func (r *recorder) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	r.read(Batch, 0)
	return r.w.Find(at, p)
}

// Leave subtracts without looking.
func (r *recorder) Leave(cpu int) {
	if r.w.m.Refs != int3.NoRef {
		r.ref(r.add, cpu)
	}
	r.w.Leave(cpu)
}

// Window implements cpus.Shared; so do the others of a CPU.
func (r *recorder) Window(site int, synced cpus.Seq, buf []cpus.Version) ([]cpus.Version, cpus.Promise) {
	r.read(Text, site)
	r.read(Promised, site)
	return r.w.Window(site, synced, buf)
}

func (r *recorder) Seq() cpus.Seq {
	r.read(Stores, 0)
	return r.w.Seq()
}

func (r *recorder) Settled(site int) cpus.Promise {
	r.read(Promised, site)
	return r.w.Settled(site)
}

// Changing reads nothing where there is one update that it can be.
func (r *recorder) Changing(site int) cpus.Change {
	if len(r.w.m.changes[site]) > 1 {
		r.read(Changing, site)
	}
	return r.w.Changing(site)
}

func (r *recorder) CallOps(addr uint64) cpus.Outcome {
	r.read(Operations, 0)
	return r.w.CallOps(addr)
}

func (r *recorder) Pending(cpu int, masked bool) bool {
	r.read(Mail, cpu)
	return r.w.Pending(cpu, masked)
}

func (r *recorder) Take(cpu int, masked bool) (cpus.Taken, bool) {
	r.change(Mail, cpu)
	return r.w.Take(cpu, masked)
}

func (r *recorder) Answer(t cpus.Ticket) {
	r.add(Answers, int(t)/len(r.w.m.Roles))
	r.w.Answer(t)
}

func (r *recorder) EnterKernel(cpu int) cpus.Space {
	r.change(Mail, cpu)
	return r.w.EnterKernel(cpu)
}

func (r *recorder) LeaveKernel(cpu int) {
	r.change(Mail, cpu)
	r.w.LeaveKernel(cpu)
}

// online notes that who is online is read: every CPU's own way tells.
func (r *recorder) online() {
	for i := 0; i < len(r.w.m.Roles) && r.w.m.Code.Path.ComesUp(); i++ {
		r.read(Registers, i)
	}
}

func (r *recorder) BringUp(cpu int) bool {
	r.online()
	r.read(Locks, 0)
	return r.w.BringUp(cpu)
}

func (r *recorder) ComeOnline(cpu int) { r.w.ComeOnline(cpu) }
func (r *recorder) CameUp(cpu int)     { r.w.CameUp(cpu) }

func (r *recorder) Arrive(cpu int) {
	r.change(Mail, cpu)
	r.add(Arrived, 0)
	r.w.Arrive(cpu)
}

func (r *recorder) Resumed(cpu int) bool {
	r.read(Mail, cpu)
	return r.w.Resumed(cpu)
}

// Peek and Literal implement cpus.Shared and poke.Ground.
func (r *recorder) Peek(site int) isa.Text {
	r.read(Text, site)
	return r.w.Peek(site)
}

func (r *recorder) Literal(site int) uint64 {
	r.read(Literal, site)
	return r.w.Literal(site)
}

var (
	_ cpus.Shared = (*recorder)(nil)
	_ poke.Ground = (*recorder)(nil)
)
