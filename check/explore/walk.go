// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
// violates a property. It calls at with each state once, before any step that leads to
// it, and then move with each step. It ends with an error when f does, ctx is over, or
// there are more than limit states.
func Walk(ctx context.Context, m *Model, limit int, at func(state int, is *Moment) error, move func(Move) error) error {
	e, n := newExpander(m, Reductions{}), m.layout.words
	there := newWorld(m)
	is := &Moment{there, there, there.cpu[:], there.space[:], there.patcher[:]}
	all := e.initial()
	number := map[string]int{string(stateKey(nil, all)): 0}
	there.unpack(all)
	if err := at(0, is); err != nil {
		return err
	}
	for from := 0; from*n < len(all); from++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		words := slices.Clone(all[from*n : (from+1)*n])
		var failed error
		e.expand(words, func(found *cpus.Violation) bool {
			if found != nil {
				return true
			}
			key := string(stateKey(nil, e.next))
			to, ok := number[key]
			if !ok {
				to = len(number)
				if to == limit {
					failed = fmt.Errorf("%w: more than %d", ErrTooMany, limit)
					return false
				}
				number[key] = to
				all = append(all, e.next...)
				there.unpack(e.next)
				if failed = at(to, is); failed != nil {
					return false
				}
			}
			a := e.action
			failed = move(Move{From: from, To: to, Patcher: a.byPatcher(), Who: int(a.who), What: a.spell(e.answers())})
			return failed == nil
		})
		switch {
		case failed != nil:
			return failed
		case e.full:
			return fmt.Errorf("%w: %s", ErrTooMany, m.noRoom())
		}
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
