// SPDX-License-Identifier: Apache-2.0

package cpus

import "sync"

// Trail is what a live machine has done, one step after the other. A step that is
// recorded is made under a lock, so that their order is that of their accesses;
// which CPU makes the next one is for the goroutines to find out.
type Trail struct {
	Max int // steps that are recorded

	mu    sync.Mutex
	steps []TrailStep
}

// TrailStep is one step of somebody.
type TrailStep struct {
	Kind    byte // 'c': a CPU's step, 't': its timer, 'n': an NMI; anything else is a patcher's
	Who     int
	Answers []int // to the questions that had more than one
	Event   Event // of a CPU's step
	CPU     CPU   // what that left of the CPU
}

// Steps are the recorded steps. The recording must be over.
func (t *Trail) Steps() []TrailStep { return t.steps }

// Do makes a step and records it; it hands over a Chooser that takes notes. A full
// trail records nothing, but the order of steps remains one.
func (t *Trail) Do(kind byte, who int, ch Chooser, step func(ch Chooser) (Event, CPU)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := notes{ch: ch}
	event, cpu := step(&n)
	if len(t.steps) < t.Max {
		t.steps = append(t.steps, TrailStep{kind, who, n.answers, event, cpu})
	}
}

func (t *Trail) step(r *runner) {
	t.Do('c', r.id, r.chooser, func(ch Chooser) (Event, CPU) {
		event := Step(&r.cpu, r.m.code, r.m, ch, r.pad)
		r.tally[event]++
		return event, r.cpu
	})
}

func (r *runner) tick() {
	if r.trail == nil {
		r.cpu.Tick(r.m.code, r.m)
		return
	}
	r.trail.Do('t', r.id, r.chooser, func(Chooser) (Event, CPU) {
		r.cpu.Tick(r.m.code, r.m)
		return Nothing, r.cpu
	})
}

// nmi lets a non-maskable interrupt come.
func (r *runner) nmi() {
	if r.trail == nil {
		r.under = r.cpu.NMI()
		return
	}
	r.trail.Do('n', r.id, r.chooser, func(Chooser) (Event, CPU) {
		r.under = r.cpu.NMI()
		return Nothing, r.cpu
	})
}

// notes is a Chooser that remembers its answers. To linger is not to be scheduled
// for a while: that is in the order of the steps already.
type notes struct {
	ch      Chooser
	answers []int
}

// Choose implements Chooser.
func (n *notes) Choose(what Choice, of int) int {
	if of <= 1 || what == ChooseLinger {
		return 0
	}
	a := n.ch.Choose(what, of)
	if what == ChooseDrain { // it only matters whether the answer is 0
		a = min(a, 1)
	}
	n.answers = append(n.answers, a)
	return a
}
