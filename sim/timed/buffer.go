// SPDX-License-Identifier: Apache-2.0

package timed

import (
	"math/rand/v2"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// stores decides which of the patcher's stores wait in its CPU's store buffer, and when
// those that nothing pushes out become visible. poke.Patcher has the buffer itself, and
// what pushes stores out: a fence, a grace period, a younger store to the same place, too
// many of them.
//
// Only a store that some later step of the plan can overtake is asked about. Where a fence
// comes next, the other CPUs cannot tell a store that waits from one that they do not fetch
// yet, and how long that takes is Costs.FetchLag: there is nothing to draw.
//
// No architecture bounds how long a store waits where no fence follows ("in finite time", Arm ARM,
// B2.3; "eventually", RISC-V, RVWMO's progress axiom), and no calibration measures it. The kernel's
// work in a tick of the timer pushes the store out, and the CPU's work between two ticks may: each
// store waits for a time without memory, Costs.TickInterval on average.
type stores struct {
	m       *Machine
	rng     *rand.Rand
	waiting int   // stores that wait, as they were when the next one was drawn
	pending int32 // number of the event that lets one of them go, 0 for none
}

// Choose implements cpus.Chooser for the patcher.
func (s *stores) Choose(what cpus.Choice, n int) int {
	if what != cpus.ChooseDrain || s.pushedOut() {
		return n - 1
	}
	return s.rng.IntN(n)
}

// pushedOut tells whether the step after the current one makes all stores visible
// before it does anything else.
func (s *stores) pushedOut() bool {
	p := &s.m.patch
	if p.At+1 == len(p.Plan) {
		return false
	}
	switch p.Plan[p.At+1].Op {
	case poke.Fence, poke.GracePeriod, poke.SynchronizeRCU, poke.Unlock:
		return true
	}
	return false
}

// draw draws when the next of the stores that wait goes, if their number has changed:
// times without memory can be drawn anew, and the first of k comes k times as fast.
func (s *stores) draw() {
	m, n := s.m, s.m.patch.Waiting()
	if n == s.waiting {
		return
	}
	if s.waiting, s.pending = n, 0; n > 0 {
		s.pending = m.ask(m.now+nanos(s.rng.ExpFloat64()*m.costs.TickInterval/float64(n)), evPatcher, storeGoes)
	}
}

// storeGoes, as who an evPatcher is about, says that a store leaves the patcher's buffer.
const storeGoes = 1

// goes lets any of the stores that wait become visible, if nothing has changed since that
// was drawn; an older one to the same place goes first.
func (s *stores) goes(number int32) {
	if number != s.pending {
		return
	}
	p := &s.m.patch
	for i := s.rng.IntN(p.Waiting()); !p.Drain(i, s.m); i-- {
	}
	s.draw()
}
