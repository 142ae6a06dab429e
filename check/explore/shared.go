// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// cpus.Shared on plain words. cpus.Machine has it with atomics.

// Seq implements cpus.Shared.
func (w *world) Seq() cpus.Seq { return cpus.Seq(w.logged + 1) }

// Window implements cpus.Shared.
func (w *world) Window(site int, synced cpus.Seq, buf []cpus.Version) ([]cpus.Version, cpus.Promise) {
	buf = buf[:0]
	texts := w.m.texts[site]
	for i := w.logged - 1; i >= 0; i-- {
		if int(w.log[i].site) != site {
			continue
		}
		seq := cpus.Seq(i + 2)
		buf = append(buf, cpus.Version{Seq: seq, Text: texts[w.log[i].text]})
		if seq <= synced {
			return buf, w.settled[site]
		}
	}
	return append(buf, cpus.Version{Seq: 1, Text: texts[w.base[site]]}), w.settled[site]
}

// Peek implements cpus.Shared and poke.Ground.
func (w *world) Peek(site int) isa.Text { return w.m.texts[site][w.newest(site)] }

// Settled implements cpus.Shared.
func (w *world) Settled(site int) cpus.Promise { return w.settled[site] }

// Changing implements cpus.Shared.
func (w *world) Changing(site int) (c cpus.Change) {
	list := w.m.changes[site]
	if len(list) > 0 {
		c = list[w.begun[site]]
	}
	return c
}

// Literal implements cpus.Shared and poke.Ground.
func (w *world) Literal(site int) uint64 { return w.literal[site] }

// CallOps implements cpus.Shared.
func (w *world) CallOps(addr uint64) cpus.Outcome { return w.m.table.Call(w.ops, addr) }

// ref is the counter that a CPU's handler changes. One that all share is kept with
// a patcher's CPU, which symmetry never moves.
func (w *world) ref(cpu int) *int8 {
	if w.m.Refs == int3.PerCPU {
		return &w.refs[cpu]
	}
	return &w.refs[w.m.homes[0]]
}

// Enter implements cpus.Handler.
func (w *world) Enter(cpu int) bool {
	r := w.ref(cpu)
	if *r == 0 {
		return false
	}
	if w.m.Refs != int3.NoRef {
		w.noteRef(cpu)
		*r++
	}
	return true
}

// Find implements cpus.Handler.
func (w *world) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	if w.published == 0 {
		return isa.Insn{}, cpus.TornDown
	}
	b := w.m.flat[w.published-1]
	slot, ok := b.index.Find(at, p)
	if !ok {
		return isa.Insn{}, cpus.NoEntry
	}
	return b.acts[slot], cpus.Hit
}

// Leave implements cpus.Handler. It subtracts without looking.
func (w *world) Leave(cpu int) {
	if w.m.Refs != int3.NoRef {
		w.noteRef(cpu)
		*w.ref(cpu)--
	}
}

// Pending implements cpus.Shared.
func (w *world) Pending(cpu int, masked bool) bool {
	for _, r := range w.box[cpu] {
		if r != 0 && !(masked && w.m.Code.Maskable(r.cause())) {
			return true
		}
	}
	return false
}

// Take implements cpus.Shared: what masking does not hold back comes first.
func (w *world) Take(cpu int, masked bool) (cpus.Taken, bool) {
	w.mail(cpu)
	for _, maskable := range []bool{false, true} {
		if maskable && masked {
			break
		}
		for i, r := range w.box[cpu] {
			if r != 0 && w.m.Code.Maskable(r.cause()) == maskable {
				w.removeRequest(cpu, i)
				return cpus.Taken{Ticket: w.ticket(r.sender(), cpu), Cause: r.cause()}, true
			}
		}
	}
	return cpus.Taken{}, false
}

func (w *world) removeRequest(cpu, i int) {
	b := &w.box[cpu]
	copy(b[i:], b[i+1:])
	b[len(b)-1] = 0
}

func (w *world) ticket(sender, cpu int) cpus.Ticket {
	return cpus.Ticket(sender*len(w.m.Roles) + cpu)
}

// Answer implements cpus.Shared.
func (w *world) Answer(t cpus.Ticket) {
	sender := int(t) / len(w.m.Roles)
	w.shares()
	w.left[sender]--
}

// EnterKernel implements cpus.Shared.
func (w *world) EnterKernel(cpu int) cpus.Space {
	w.mail(cpu)
	was := w.space[cpu]
	w.space[cpu] = 0
	return was
}

// LeaveKernel implements cpus.Shared.
func (w *world) LeaveKernel(cpu int) {
	w.mail(cpu)
	w.space[cpu] = cpus.InUser
}

// own is what a CPU itself is about, beneath an NMI.
func (w *world) own(cpu int) *cpus.CPU {
	if w.cpu[cpu].InNMI() {
		return &w.under[cpu]
	}
	return &w.cpu[cpu]
}

// offline tells whether rounds pass over a CPU.
func (w *world) offline(cpu int) bool {
	return w.m.Code.Path.ComesUp() && w.own(cpu).Offline(w.m.Code)
}

// comesUp tells whether some CPU is on its way to be online: who brings it up has the
// lock of hotplug.
func (w *world) comesUp() bool {
	for i := range w.m.Roles {
		if way, _ := w.own(i).OnWay(); way == cpus.OnUp {
			return true
		}
	}
	return false
}

// BringUp implements cpus.Shared; so do the other two: where CPUs are on their way says
// it all.
func (w *world) BringUp(int) bool {
	return w.Held[poke.HotplugLock] == 0 && !w.comesUp()
}
func (w *world) ComeOnline(int) {}
func (w *world) CameUp(int)     {}

// Arrive implements cpus.Shared.
func (w *world) Arrive(cpu int) {
	w.mail(cpu)
	w.shares()
	w.stopped[cpu] = true
	w.arrived++
}

// Resumed implements cpus.Shared.
func (w *world) Resumed(cpu int) bool { return !w.stopped[cpu] }
