// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// Move is a step from one state of a model to another. States are numbered as they are
// found; before anything has happened it is state 0.
type Move struct {
	From, To int
	Patcher  bool // or a CPU makes it; a store that becomes visible is the patcher's
	Who      int
	What     string // in words
}

// ErrTooMany says that there are more states than Walk has room for.
var ErrTooMany = errors.New("too many states")

// Walk goes through every state that a model can reach, and leaves nothing out but what
// violates a property. It calls at with each state once, before any step that leads to
// it, and then move with each step. It ends with an error when f does, ctx is over, or
// there are more than limit states.
func Walk(ctx context.Context, m *Model, limit int, at func(state int, is *Moment) error, move func(Move) error) error {
	e, n := newExpander(m, Reductions{}), m.layout.words
	here, there := newWorld(m), newWorld(m)
	all := e.initial()
	number := map[string]int{stateKey(all): 0}
	there.unpack(all)
	if err := at(0, &Moment{there}); err != nil {
		return err
	}
	for from := 0; from*n < len(all); from++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		words := slices.Clone(all[from*n : (from+1)*n])
		here.unpack(words)
		var failed error
		e.expand(words, func(found *cpus.Violation) bool {
			if found != nil {
				return true
			}
			key := stateKey(e.next)
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
				if failed = at(to, &Moment{there}); failed != nil {
					return false
				}
			}
			a := e.action
			failed = move(Move{From: from, To: to, Patcher: a.ofPatcher(), Who: int(a.who), What: here.does(a)})
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

// stateKey tells states apart.
func stateKey(words []uint64) string {
	b := make([]byte, 0, 8*len(words))
	for _, w := range words {
		for i := range 8 {
			b = append(b, byte(w>>(8*i)))
		}
	}
	return string(b)
}

// Moment is one state of a model, to be looked at from outside. It lasts until the next one.
type Moment struct{ w *world }

// Shared is what CPUs share, to be read only.
func (m *Moment) Shared() cpus.Shared { return m.w }

// CPU is a CPU's own state.
func (m *Moment) CPU(cpu int) cpus.CPU { return m.w.cpu[cpu] }

// Asked is what waits in a CPU's box, if anything does; owed is how many answers it owes,
// that one among them.
func (m *Moment) Asked(cpu int) (waits cpus.Cause, asked bool, owed int) {
	owed = m.w.owed(cpu, 0)
	if r := m.w.box[cpu][0]; r != 0 {
		return r.cause(), true, owed
	}
	return 0, false, owed
}

// Stopping tells whether CPUs are to stand still, Stopped whether this one does.
func (m *Moment) Stopping() bool { return m.w.stopping != 0 }

// Stopped is the other half.
func (m *Moment) Stopped(cpu int) bool { return m.w.stopped[cpu] }

// Space is where an isolated CPU is.
func (m *Moment) Space(cpu int) cpus.Space { return m.w.space[cpu] }

// Published tells whether handlers find a batch. References are those to it that a CPU
// sees: the patcher's, and its handlers'.
func (m *Moment) Published() bool { return m.w.published != 0 }

// References is the other half.
func (m *Moment) References(cpu int) int { return int(*m.w.ref(cpu)) }

// Entry is what handlers find about a site.
func (m *Moment) Entry(site int) (isa.Insn, cpus.Found) {
	return m.w.Find(m.w.m.Code.Sites[site], &cpus.Probe{})
}

// Patcher is a patcher, to be read only, and whether it sits on its CPU.
func (m *Moment) Patcher(i int) (p *poke.Patcher, sits bool) {
	return &m.w.patcher[i], m.w.sat[i] == sitting
}
