// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/poke"
)

// Move is a step from one state of a model to another. States are numbered in the order in
// which they are found; the initial state is 0.
type Move struct {
	From, To int
	Patcher  bool // or a CPU makes it; a store that becomes visible is the patcher's
	Who      int
	What     string // as a schedule spells it
}

// ErrTooMany says that there are more states than Walk has room for.
var ErrTooMany = errors.New("too many states")

// Walk goes through every state that a model can reach, and leaves nothing out but what
// violates a property. It calls at with each state, in their order, and then move with each
// step from it. It ends with an error when ctx is over, or there are more than limit states.
func Walk(ctx context.Context, m *Model, limit int, at func(*Moment), move func(Move)) error {
	t, there := tracer{m: m, e: newExpander(m, Reductions{})}, newWorld(m)
	is := &Moment{there, there, there.cpu[:], there.space[:], there.patcher[:]}
	number := numbersFrom(t.e)
	err := t.levels(ctx, func(words []uint64) bool {
		there.unpack(words)
		at(is)
		return len(t.parent) <= limit
	}, func(l link, broken *cpus.Violation) (fresh, on bool) {
		if broken != nil {
			return false, true
		}
		to, fresh := number.of(t.e.next)
		a := t.e.action
		move(Move{int(l.parent), int(to), a.byPatcher(), int(a.who), a.spell(t.e.answers())})
		return fresh, true
	})
	switch {
	case err != nil:
		return err
	case len(t.parent) > limit:
		return fmt.Errorf("%w: more than %d", ErrTooMany, limit)
	case t.e.full:
		return fmt.Errorf("%w: %s", ErrTooMany, m.noRoom())
	}
	return nil
}

// Moment is one state of a model, to be looked at from outside, and to be read only. It lasts until the next one.
type Moment struct {
	cpus.Shared
	w        *world
	CPUs     []cpus.CPU
	Spaces   []cpus.Space
	Patchers []poke.Patcher
}

// Asked is what waits in a CPU's box, if anything does; owed is how many answers it owes,
// that one among them.
func (m *Moment) Asked(cpu int) (waits cpus.Cause, asked bool, owed int) {
	owed = m.w.owed(cpu, 0)
	if r := m.w.box[cpu][0]; r != 0 {
		return r.cause(), true, owed
	}
	return 0, false, owed
}

// Stopping tells whether CPUs are to stand still.
func (m *Moment) Stopping() bool { return m.w.stopping != 0 }

// Sits tells whether a patcher sits on its CPU.
func (m *Moment) Sits(patcher int) bool { return m.w.sat[patcher] == sitting }

// References are those to the batch that a CPU sees: the patcher's, and its handlers'.
func (m *Moment) References(cpu int) int { return int(*m.w.ref(cpu)) }
