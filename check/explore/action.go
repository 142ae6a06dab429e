// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// kind is what an action is.
type kind uint8

const (
	stepCPU     kind = iota // a CPU makes a step
	stepPatcher             // a patcher does
	begin                   // a patcher takes its CPU over
	drain                   // a buffered store of a patcher becomes visible by itself
	park                    // a CPU's task is preempted
	unpark                  // a CPU goes on with a task that was
	skip                    // a CPU goes on without looking for interrupts: only where that makes no difference
	attend                  // a CPU looks again: likewise
	nmi                     // a non-maskable interrupt comes
	tick                    // a CPU's timer: only on live machines, since it takes possibilities away and adds none
)

// action is one thing that may happen next.
type action struct {
	kind kind
	who  uint8 // the CPU or the patcher
	arg  uint8 // of drain: which store; of unpark: whose task
}

// byPatcher tells whether a patcher does it, or a CPU.
func (a action) byPatcher() bool { return a.kind == stepPatcher || a.kind == begin || a.kind == drain }

// enabled appends what may happen next.
func (w *world) enabled(list []action) []action {
	for i := range w.m.Programs {
		list = w.enabledPatcher(list, i)
	}
	for i := range w.m.Roles {
		c := &w.cpu[i]
		if w.m.Code.Disturbs(c) {
			list = append(list, action{kind: nmi, who: uint8(i)})
		}
		if w.leased(i) {
			if (w.Pending(i, false) || !c.Preemptible()) && !w.masked(i) {
				list = append(list, action{kind: stepCPU, who: uint8(i)})
			}
			continue
		}
		list = append(list, action{kind: stepCPU, who: uint8(i)})
		if w.m.ticks {
			list = append(list, action{kind: tick, who: uint8(i)})
		}
		if !w.m.Preempt {
			continue
		}
		if c.CanPark() && !w.parked[i].There() {
			list = append(list, action{kind: park, who: uint8(i)})
		}
		if c.CanUnpark() {
			for k := range w.m.Roles {
				if w.parked[k].There() {
					list = append(list, action{kind: unpark, who: uint8(i), arg: uint8(k)})
				}
			}
		}
	}
	return list
}

func (w *world) enabledPatcher(list []action, i int) []action {
	home := w.m.homes[i]
	switch w.sat[i] {
	case waiting:
		c := &w.cpu[home]
		inCall := w.m.Preempt && c.CanPark() && !w.parked[home].There()
		if c.Houses() || inCall {
			list = append(list, action{kind: begin, who: uint8(i)})
		}
	case sitting:
		if w.cpu[home].BetweenCalls() { // not interrupted, nor standing still
			list = append(list, action{kind: stepPatcher, who: uint8(i)})
		}
	}
	for k := range w.patcher[i].Waiting() {
		list = append(list, action{kind: drain, who: uint8(i), arg: uint8(k)})
	}
	return list
}

// perform makes an action happen. found holds its violation.
func (w *world) perform(a action, ch cpus.Chooser) {
	w.found, w.event, w.waits, w.chose = nil, cpus.Nothing, false, false
	w.act(a, ch)
	if a.kind == stepPatcher && !w.waits {
		w.outdate()
	}
	if w.logged > 0 && !w.waits && (a.kind != stepCPU || w.needsLess(int(a.who))) {
		w.forget()
	}
	if w.observe != nil {
		w.observe(a)
	}
}

func (w *world) act(a action, ch cpus.Chooser) {
	w.noteAction(a)
	switch a.kind {
	case stepCPU:
		w.stepCPU(int(a.who), ch)
	case stepPatcher:
		w.stepPatcher(int(a.who), ch)
	case begin:
		w.begin(int(a.who))
	case drain:
		w.actor = int(a.who)
		w.waits = !w.patcher[a.who].Drain(int(a.arg), w)
	case park:
		w.park(int(a.who))
	case unpark:
		w.cpu[a.who].Unpark(w.parked[a.arg])
		if c := &w.cpu[a.who]; w.parked[a.arg].Quiet {
			c.Quiesce = w.ticket(int(c.Quiesce)/len(w.m.Roles), int(a.who))
		}
		w.parked[a.arg] = cpus.Task{}
	case skip:
		w.cpu[a.who].SkipPoll()
	case attend:
		w.cpu[a.who].Repoll()
	case nmi:
		w.under[a.who] = w.cpu[a.who].NMI()
	case tick:
		w.cpu[a.who].Tick(w.m.Code, w.shared)
	}
}

func (w *world) stepCPU(i int, ch cpus.Chooser) {
	c := &w.cpu[i]
	if w.leased(i) && c.BetweenCalls() { // its own task makes no call meanwhile
		c.Repoll()
	}
	looks := c.AtBorder() && !c.Polled()
	w.was = *c
	w.event = cpus.Step(c, w.m.Code, w.shared, ch, w.pad)
	if !looks {
		w.reached.cpu(&w.was, w.event)
	}
	if c.Over(w.m.Code) {
		c.Return(w.under[i])
		w.under[i] = cpus.CPU{ID: c.ID, Role: c.Role}
	}
	if w.pad.Found {
		v := w.pad.Violation
		w.violate(&v)
	}
}

func (w *world) stepPatcher(i int, ch cpus.Chooser) {
	w.actor = i
	p := &w.patcher[i]
	at, done, stage := p.Place()
	choosing := p.Between()
	status, err := p.Step(context.Background(), w, ch)
	if err != nil {
		w.violate(&cpus.Violation{Property: cpus.BrokenSite, CPU: w.m.homes[i],
			Site: int(p.Patches[p.Plan[p.At].From+p.Done].Site),
			Why:  "the patcher does not find what it expects: " + err.Error()})
		return
	}
	at2, done2, stage2 := p.Place()
	w.waits = status == poke.Waits && at == at2 && done == done2 && stage == stage2
	if w.chose = choosing; choosing {
		if w.waits && w.stuck(i) {
			w.violate(w.deadlock(i))
		}
		return
	}
	if !w.waits {
		w.reached.Plans[i][at/64] |= 1 << (at % 64)
	}
	if w.waits && w.stuck(i) {
		w.violate(w.deadlock(i))
	}
	if w.waits && !w.conserved(i) {
		w.violate(&cpus.Violation{Property: cpus.Conservation, CPU: w.m.homes[i],
			Why: fmt.Sprintf("patcher %d waits for %d answers, and others are owed", i, w.left[i])})
	}
	if p.Between() {
		w.finish(i, w.m.Programs[i].update(at))
	}
}

// begin takes a CPU over; where tasks can be preempted, also in the middle of a
// call.
func (w *world) begin(i int) {
	home := w.m.homes[i]
	if c := &w.cpu[home]; !c.Preemptible() {
		w.park(home)
	}
	w.cpu[home].Repoll()
	w.sat[i] = sitting
}

// park takes a CPU's task off. A grace period that had not asked the CPU yet asks
// the task.
func (w *world) park(i int) {
	t := w.cpu[i].Park(w.m.Code, w.shared)
	for k, r := range w.box[i] {
		if r != 0 && r.cause() == cpus.Quiesce && !t.Quiet {
			t.Quiet, t.Quiesce = true, w.ticket(r.sender(), i)
			w.removeRequest(i, k)
			break
		}
	}
	w.parked[i] = t
}

// finish gives the CPU back, and looks at what an update of the program has left.
func (w *world) finish(i, update int) {
	p := &w.patcher[i]
	if w.sat[i] = done; p.Endless() {
		w.sat[i] = waiting
	}
	home := w.m.homes[i]
	w.cpu[home].Repoll()
	w.writes(home)
	if w.stopping == int8(i+1) && w.arriving > 0 {
		w.violate(&cpus.Violation{Property: cpus.Deadlock, CPU: home,
			Why: "the program is over, and the CPUs that it has stopped never go on"})
	}
	if w.m.anyEnd {
		return
	}
	for _, l := range w.m.final[i][update] {
		if !w.m.sharedSite(i, l.site) {
			w.holdSite(p, home, l)
		}
	}
}

// holdSite compares a site with the text and the literal that an update was to leave there,
// where the patcher's stores have become visible.
func (w *world) holdSite(p *poke.Patcher, home int, l left) {
	v := cpus.Violation{Property: cpus.BrokenSite, CPU: home, Site: int(l.site), Addr: w.m.Code.Sites[l.site]}
	text, ops, n := w.m.texts[v.Site][w.newest(v.Site)], w.literal[v.Site], w.m.Code.Len
	switch {
	case text != l.text && !p.Holds(l.site, false):
		v.Bytes, v.Why = text.Format(n), "the program is over and left this instead of "+l.text.Format(n)
	case w.m.Code.Literals() && ops != l.ops && !p.Holds(l.site, true):
		v.Bytes = fmt.Sprintf("%#x", ops)
		v.Why = fmt.Sprintf("the program is over and left this ops in the literal instead of %#x", l.ops)
	default:
		return
	}
	w.violate(&v)
}
