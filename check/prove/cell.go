// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"math"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/records"
)

// The request that a CPU has yet to answer.
const (
	askedNothing number = iota
	askedSync           // waits in its box
	askedStop
	askedQuiesce
	askedQuiesceCPUs
	owesAnswer // taken, and not answered
	numAsked
)

var askedFor = map[cpus.Cause]number{
	cpus.Sync: askedSync, cpus.Stop: askedStop, cpus.Quiesce: askedQuiesce, cpus.QuiesceCPUs: askedQuiesceCPUs,
}

// Whether a CPU is to stand still.
const (
	runs number = iota
	toStand
	stands
	numStand
)

// The promise about a site: none, that no CPU executes a text before the newest one, or
// that none executes a text before the one to come.
const (
	unsettled number = iota
	settledNow
	settledToCome
	numSettled
)

// The entry of a batch for a site: none, or the instruction to act as.
const (
	noEntry number = iota
	actsNew
	actsOld
	numEntries
)

// siteDone is when the step is through with a site; before, the accesses it has made.
const siteDone = 2

// Positions of texts, and the promises that CPUs remember: about what is promised now,
// or about what was promised once.
const (
	newest  cpus.Seq = 50
	present cpus.Seq = 100
)

var (
	promisedNow  = cpus.PromiseOf(2, 2)
	promisedOnce = cpus.PromiseOf(1, 1)
)

// cell is the ground of one step: one CPU and one site. It implements cpus.Shared,
// poke.Ground and cpus.Chooser, and notes what the step reads and writes. A read returns
// the view's value; without a view, any value.
type cell struct {
	m  *machine
	of *view // nil: anything

	cpus.Script // gives every answer in turn
	know        view
	known       [numAttrs]bool
	written     [numAttrs]bool
	b           branch
	level       level // of the patcher's step
}

// begin forgets the last run; the answers stay.
func (c *cell) begin(b branch) {
	c.known, c.written, c.b = [numAttrs]bool{}, [numAttrs]bool{}, b
}

// read is the value of an attribute of the actor, which the step depends on.
func (c *cell) read(a attr) number {
	if !c.known[a] {
		c.known[a] = true
		if c.of != nil {
			c.know[a] = c.of[a]
		} else {
			n := c.m.size(a)
			if n > math.MaxUint8 { // more than a script can tell apart
				panic(limit(fmt.Sprintf("%d values of %q, which a step reads", n, a)))
			}
			c.know[a] = number(c.Ask(n))
		}
		c.b.when = append(c.b.when, cond{own, []test{{a, only(c.know[a])}}})
	}
	return c.know[a]
}

// write gives an attribute of the actor a value.
func (c *cell) write(a attr, x number) { c.know[a], c.known[a], c.written[a] = x, true, true }

// effect notes one that is not about the actor alone.
func (c *cell) effect(u update) { c.b.then = append(c.b.then, u) }

// needs notes a condition about every CPU or site.
func (c *cell) needs(who scope, any ...test) { c.b.when = append(c.b.when, cond{who, any}) }

// end is what the step has amounted to.
func (c *cell) end() branch {
	for a := range numAttrs {
		if c.written[a] {
			c.b.then = append(c.b.then, update{attr: a, to: c.know[a]})
		}
	}
	return c.b
}

// Window implements cpus.Shared.
func (c *cell) Window(_ int, _ cpus.Seq, buf []cpus.Version) ([]cpus.Version, cpus.Promise) {
	w := c.m.windows.list[c.read(window)]
	buf = buf[:0]
	add := func(t number) {
		buf = append(buf, cpus.Version{Seq: newest - cpus.Seq(len(buf)), Text: c.m.texts.list[t]})
	}
	if !c.m.ordered {
		add(c.read(text))
	}
	for _, t := range w.list[:w.n] {
		if c.m.ordered || t != c.read(text) {
			add(t)
		}
	}
	promise := cpus.PromiseOf(0, 2)
	switch c.read(settled) {
	case settledNow:
		promise = cpus.PromiseOf(newest, 2)
	case settledToCome:
		promise = cpus.PromiseOf(newest+1, 2)
	}
	return buf, promise
}

// Peek implements cpus.Shared and poke.Ground.
func (c *cell) Peek(int) isa.Text { return c.m.texts.list[c.read(text)] }

// Seq implements cpus.Shared.
func (c *cell) Seq() cpus.Seq { return present }

// Settled implements cpus.Shared.
func (c *cell) Settled(int) cpus.Promise {
	if c.read(settled) == unsettled {
		return cpus.PromiseOf(0, 3)
	}
	return promisedNow
}

// Changing implements cpus.Shared: all updates of the site exchange the same two texts.
func (c *cell) Changing(int) cpus.Change { return c.m.site().Change(false) }

// Literal implements cpus.Shared and poke.Ground.
func (c *cell) Literal(int) uint64 { return c.m.literals.list[c.read(literal)] }

// CallOps implements cpus.Shared.
func (c *cell) CallOps(ops uint64) cpus.Outcome {
	return c.m.table.Call(c.m.ops.list[c.read(opsStates)], ops)
}

// Enter implements cpus.Handler. The count is the patcher's reference, and one for each CPU
// whose handler has taken a reference and not given it back.
func (c *cell) Enter(int) bool {
	if c.read(reference) != 0 {
		return true
	}
	if c.m.refs != int3.SharedRef {
		return false
	}
	if c.m.several {
		return c.Ask(2) == 1
	}
	if c.Ask(2) == 0 {
		c.needs(every, test{does, others(c.m.holding())})
		return false
	}
	c.needs(some, test{does, c.m.holding()})
	return true
}

// Find implements cpus.Handler.
func (c *cell) Find(at records.Addr, p *cpus.Probe) (isa.Insn, cpus.Found) {
	if c.read(published) == 0 {
		return isa.Insn{}, cpus.TornDown
	}
	entry := c.read(entry)
	if entry == noEntry {
		return isa.Insn{}, cpus.NoEntry
	}
	if c.m.misplaced && c.Ask(2) == 1 {
		return isa.Insn{}, cpus.NoEntry
	}
	if c.m.shifted && c.Ask(2) == 1 {
		next := c.m.patches[1].Change(entry == actsOld)
		return c.m.code.Act(int(c.m.site().Site), next.To), cpus.Hit // the instruction of the next site there
	}
	index, acts := poke.Batch(c.m.code, c.m.lookup, poke.Sorted, c.m.patches[:1], entry == actsOld)
	slot, ok := index.Find(at, p)
	if !ok {
		return isa.Insn{}, cpus.NoEntry
	}
	return acts[slot], cpus.Hit
}

// Leave implements cpus.Handler.
func (c *cell) Leave(int) {}

// pending tells whether a request waits that the CPU would take.
func (c *cell) pending(masked bool) bool {
	switch c.read(asked) {
	case askedSync:
		return !masked || c.m.code.Traits.MaskedRounds
	case askedStop, askedQuiesce, askedQuiesceCPUs:
		return !masked
	}
	return false
}

// Pending implements cpus.Shared.
func (c *cell) Pending(_ int, masked bool) bool { return c.pending(masked) || c.asks(masked) }

// Take implements cpus.Shared.
func (c *cell) Take(_ int, masked bool) (cpus.Taken, bool) {
	if c.asks(masked) {
		return c.takeOthers(masked), true
	}
	if !c.pending(masked) {
		return cpus.Taken{}, false
	}
	is := c.read(asked)
	c.write(asked, owesAnswer)
	for cause, x := range askedFor {
		if x == is {
			return cpus.Taken{Cause: cause}, true
		}
	}
	return cpus.Taken{}, false
}

// Answer implements cpus.Shared.
func (c *cell) Answer(which cpus.Ticket) {
	if which != ofOthers && (!c.m.preempts || c.read(asked) == owesAnswer) { // or a task that was preempted owed it
		c.write(asked, askedNothing)
	}
}

// EnterKernel and LeaveKernel implement cpus.Shared.
func (c *cell) EnterKernel(int) cpus.Space {
	was := cpus.Space(c.read(space))
	c.write(space, 0)
	return was
}

// LeaveKernel is the other half.
func (c *cell) LeaveKernel(int) { c.write(space, number(cpus.InUser)) }

// BringUp implements cpus.Shared; so do the other three: what CPUs do says who has the lock.
func (c *cell) BringUp(int) bool {
	if c.m.program.items[c.m.places.list[c.read(place)].item].held.has(poke.HotplugLock) {
		return false
	}
	c.needs(every, test{does, others(c.m.hotplugging())})
	return true
}

// TakeDown is false where the CPU is asked for something.
func (c *cell) TakeDown(cpu int) bool { return c.read(asked) == askedNothing && c.BringUp(cpu) }

// ComeOnline does nothing: only the CPU's own state changes, and the step changes that.
func (c *cell) ComeOnline(int) {}

// EndHotplug gives the lock back.
func (c *cell) EndHotplug(int) {}

// Arrive and Resumed implement cpus.Shared. For another patcher, a CPU stands still for as long as it likes.
func (c *cell) Arrive(int) {
	if !c.m.several || c.read(stand) != runs {
		c.write(stand, stands)
	}
}

// Resumed is the other half.
func (c *cell) Resumed(int) bool { return c.read(stand) != stands }
