// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// world is one state of a model, in plain words, together with the action under way. It implements
// cpus.Shared and poke.Ground.
type world struct {
	m      *Model
	cpu    [MaxCPUs]cpus.CPU
	parked [MaxCPUs]cpus.Task
	under  [MaxCPUs]cpus.CPU // what an NMI has interrupted
	state
	patcher [MaxPatchers]poke.Patcher

	// Not state: room, and the results of the action under way.
	pad     *cpus.Scratchpad
	actor   int      // the patcher that acts
	was     cpus.CPU // the CPU that acts, before its step
	found   *cpus.Violation
	event   cpus.Event
	waits   bool // the patcher's step changed nothing
	notes        // what the actions since they were last cleared have read and written
	chose   bool // the patcher's step chose an update
	full    bool // a store found no room in the log
	reached reached
	// observe, where set, is told of every action once it has happened.
	observe func(action)
	// shared is what CPUs make their accesses through: the world, but for tests of CPUs
	// that others are unkind to.
	shared cpus.Shared
}

// state is what CPUs and patchers share.
type state struct {
	base   [MaxSites]uint8      // the text that every CPU has at least seen, as an index of texts
	log    [maxStores + 1]store // stores since, the oldest first; the i-th is at position i+2
	logged int

	settled [MaxSites]cpus.Promise
	begun   [MaxSites]uint8 // the update begun last, as an index of changes
	literal [MaxSites]uint64
	ops     cpus.OpsStates

	published uint8 // number of the batch, 0 for none
	refs      [MaxCPUs]int8
	box       [MaxCPUs][MaxPatchers]request // in order of arrival
	stopped   [MaxCPUs]bool
	space     [MaxCPUs]cpus.Space

	sat      [MaxPatchers]seat
	left     [MaxPatchers]int8 // answers that a sender waits for
	arrived  int8
	arriving int8
	stopping int8 // the patcher that has the machine stopped, plus 1
	poke.Commons
}

// store is one store to a site, and the text that it left.
type store struct{ site, text uint8 }

// request is one interrupt in a box: 1 + sender, and above that its cause's index in
// requestCauses.
type request uint8

// requestCauses are the causes of what patchers send here.
var requestCauses = [4]cpus.Cause{cpus.Sync, cpus.Stop, cpus.Quiesce, cpus.QuiesceCPUs}

func (r request) sender() int       { return int(r&(1<<bitsFrom-1)) - 1 }
func (r request) cause() cpus.Cause { return requestCauses[r>>bitsFrom] }

// seat is what a patcher does to the CPU that it sits on.
type seat uint8

const (
	waiting seat = iota // has not begun, or is between two updates
	sitting             // the CPU's own task waits
	done
)

// newWorld is the model before anything has happened.
func newWorld(m *Model) *world {
	w := &world{m: m, pad: cpus.NewScratchpad()}
	w.shared = w
	for i, r := range m.Roles {
		w.cpu[i] = cpus.CPU{ID: int16(i), Role: r, Synced: 1}
		w.under[i] = cpus.CPU{ID: int16(i), Role: r}
		if r == cpus.Offline { // busy, once it is online
			w.cpu[i].Role, w.under[i].Role = cpus.Busy, cpus.Busy
			w.cpu[i].PowerOff()
		}
	}
	for i, p := range m.Programs {
		w.patcher[i] = p.patcher(m.Code)
	}
	for site, t := range m.Initial {
		w.settled[site] = cpus.PromiseOf(0, 1)
		w.base[site] = m.textIndex(site, t)
		w.literal[site] = m.Literals[site]
	}
	w.ops = m.attached
	return w
}

func (m *Model) textIndex(site int, t isa.Text) uint8 {
	for i, u := range m.texts[site] {
		if u == t {
			return uint8(i)
		}
	}
	panic("a text that no store leads to")
}

// violate records what broke, if anything did; the first counts.
func (w *world) violate(v *cpus.Violation) {
	if w.found == nil {
		w.found = v
	}
}

// leased tells whether a patcher sits on the CPU.
func (w *world) leased(cpu int) bool {
	for i := range w.m.Programs {
		if w.m.homes[i] == cpu && w.sat[i] == sitting {
			return true
		}
	}
	return false
}

// masked tells whether a patcher on the CPU holds back its interrupts.
func (w *world) masked(cpu int) bool {
	for i := range w.m.Programs {
		if w.m.homes[i] == cpu && w.sat[i] == sitting && w.patcher[i].Masks() {
			return true
		}
	}
	return false
}

// newest is the last text of a site, as an index.
func (w *world) newest(site int) uint8 {
	for i := w.logged - 1; i >= 0; i-- {
		if int(w.log[i].site) == site {
			return w.log[i].text
		}
	}
	return w.base[site]
}

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
	was := w.space[cpu]
	w.space[cpu] = 0
	return was
}

// LeaveKernel implements cpus.Shared.
func (w *world) LeaveKernel(cpu int) {
	w.space[cpu] = cpus.InUser
}

// own is what a CPU itself is about, beneath an NMI.
func (w *world) own(cpu int) *cpus.CPU {
	if w.cpu[cpu].InNMI() {
		return &w.under[cpu]
	}
	return &w.cpu[cpu]
}

// hotplugs tells whether some CPU is on its way to be online, or offline: who brings it there has
// the lock of hotplug.
func (w *world) hotplugs() bool {
	for i := range w.m.Roles {
		if way, _ := w.own(i).OnWay(); way == cpus.OnUp || way == cpus.OnDown {
			return true
		}
	}
	return false
}

// BringUp implements cpus.Shared; so do the other three: where CPUs are on their way says
// it all.
func (w *world) BringUp(int) bool {
	return w.Held[poke.HotplugLock] == 0 && !w.hotplugs()
}
func (w *world) ComeOnline(int)        {}
func (w *world) TakeDown(cpu int) bool { return !w.Pending(cpu, false) && w.BringUp(cpu) }
func (w *world) EndHotplug(int)        {}

// Arrive implements cpus.Shared.
func (w *world) Arrive(cpu int) {
	w.shares()
	w.stopped[cpu] = true
	w.arrived++
}

// Resumed implements cpus.Shared.
func (w *world) Resumed(cpu int) bool { return !w.stopped[cpu] }
