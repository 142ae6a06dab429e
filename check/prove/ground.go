// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// The cell as poke.Ground, on which the patcher works. It notes the patcher's writes to every
// CPU or site as effects, and its waits as conditions that must hold of all.

// Store implements poke.Ground.
func (c *cell) Store(site, off, n int, t isa.Text) {
	if site != 0 {
		return
	}
	now := c.m.texts.index(c.m.texts.list[c.read(text)].Splice(off, n, t))
	c.write(text, now)
	if c.read(settled) == settledToCome {
		c.write(settled, settledNow)
	}
	c.effect(update{attr: window, how: push, to: now, ofCPUs: every})
}

// StoreLiteral implements poke.Ground.
func (c *cell) StoreLiteral(site int, ops uint64) {
	if site == 0 {
		c.write(literal, c.m.literals.index(ops))
	}
}

// Unsettle implements poke.Ground: promises that CPUs have met end.
func (c *cell) Unsettle(site int) {
	if site == 0 {
		c.write(settled, unsettled)
		c.effect(update{attr: does, how: older, ofCPUs: every})
	}
}

// Begin implements poke.Ground; see Changing.
func (c *cell) Begin(int, cpus.Change) {}

// Settle implements poke.Ground.
func (c *cell) Settle(site int, want isa.Text) {
	switch {
	case site != 0:
	case c.Peek(site) == want:
		c.write(settled, settledNow)
	default:
		c.write(settled, settledToCome)
	}
}

// Publish implements poke.Ground.
func (c *cell) Publish(_ int, _ []poke.Patch, undo bool) {
	acts := actsNew
	if undo {
		acts = actsOld
	}
	c.write(published, 1)
	in := c.level.covers()
	c.effect(update{attr: entry, to: acts, ofSites: every, provided: []test{{role, in}}})
	c.effect(update{attr: entry, to: noEntry, ofSites: every, provided: []test{{role, without(in, int(numRoles))}}})
	c.write(reference, 1)
}

// Unpublish implements poke.Ground.
func (c *cell) Unpublish() { c.write(reference, 0) }

// Drained implements poke.Ground.
func (c *cell) Drained() bool {
	c.b.when = append(c.b.when, cond{own, []test{{reference, only(0)}}})
	if c.m.refs != int3.NoRef {
		c.needs(every, test{does, others(c.m.holding())})
	}
	return true
}

// Clear implements poke.Ground.
func (c *cell) Clear() {
	c.write(published, 0)
	c.effect(update{attr: entry, to: noEntry, ofSites: every})
}

// SetOps implements poke.Ground.
func (c *cell) SetOps(ops uint64, o cpus.Outcome) {
	c.write(opsStates, c.m.ops.index(c.m.table.Set(c.m.ops.list[c.read(opsStates)], ops, o)))
}

// Share implements poke.Ground: a patcher finds every lock free, but that of hotplug while a CPU is brought up, and
// text_mutex where its place says that another one has it. Once it has ftrace_lock, no CPU owes another patcher's grace
// period an answer. Where stores go to is known of a plan's steps: see markStrays.
func (c *cell) Share(a poke.Access) bool {
	if a.Takes(poke.HotplugLock) {
		c.needs(every, test{does, others(c.m.hotplugging())})
	}
	if a.Takes(poke.FtraceLock) && c.m.several {
		c.needs(every, test{does, others(c.m.oweQuiet(ofOthers))})
	}
	return a.Op == poke.Lock
}

// Send implements poke.Ground.
func (c *cell) Send(cause cpus.Cause, lazy bool) {
	to, _ := c.send(lazy)
	if cause == cpus.Quiesce {
		c.b.then = append(c.b.then, c.m.askPreempted(0)...)
	}
	c.effect(update{attr: asked, to: askedFor[cause], ofCPUs: every, provided: to})
}

// send says whom a request goes to, and whom it leaves out.
func (c *cell) send(lazy bool) (to, leftOut []test) {
	to = []test{{home, only(0)}}
	if c.m.code.Path.ComesUp {
		to = append(to, test{does, others(c.m.cpus.where(func(s *cpus.CPU) bool { return s.Offline(c.m.code) }))})
	}
	if c.m.preempts {
		to = append(to, test{does, others(c.m.arePreempted())})
	}
	if !lazy {
		return to, nil
	}
	owes, _ := cpus.InUser.LeaveOut()
	leftOut = append(slices.Clone(to), test{space, only(number(cpus.InUser), number(owes))})
	c.effect(update{attr: space, to: number(owes), ofCPUs: every, provided: leftOut})
	return append(to, test{space, only(0)}), leftOut
}

// Answered implements poke.Ground.
func (c *cell) Answered() bool {
	c.needs(every, test{asked, only(askedNothing)})
	if c.m.preempts {
		c.needs(every, test{does, others(c.m.oweQuiet(0))})
	}
	return true
}

// StopMachine implements poke.Ground. A CPU that is left out stands still when it comes
// in, and the patcher does not wait for it.
func (c *cell) StopMachine(lazy bool) bool {
	if c.m.several { // one patcher's stop_machine at a time
		c.needs(every, test{does, others(c.m.standForOthers())})
	}
	to, leftOut := c.send(lazy)
	if lazy {
		c.effect(update{attr: stand, to: stands, ofCPUs: every, provided: leftOut})
	}
	c.effect(update{attr: asked, to: askedStop, ofCPUs: every, provided: to})
	c.effect(update{attr: stand, to: toStand, ofCPUs: every, provided: to})
	return true
}

// Stopped implements poke.Ground.
func (c *cell) Stopped() bool {
	c.Answered()
	c.needs(every, test{stand, only(runs, stands)})
	return true
}

// ResumeMachine implements poke.Ground.
func (c *cell) ResumeMachine() { c.effect(update{attr: stand, to: runs, ofCPUs: every}) }

// SyncSelf implements poke.Ground.
func (c *cell) SyncSelf() {
	c.effect(update{attr: window, how: fresh, ofCPUs: every, ofSites: every, provided: []test{{home, only(1)}}})
}

// others are all values but these.
func others(s values) values { return without(s, maxValues) }

// without is the values below n that are not in s.
func without(s values, n int) (t values) {
	for x := range n {
		t[x>>6] |= ^s[x>>6] & (1 << (x & 63))
	}
	return t
}
