package museum

import (
	"slices"

	"github.com/textpoke/textpoke/poke"
)

// one is a plan of one step.
func one(s poke.Step) []poke.Step { return []poke.Step{s} }

// when is a part of a plan that is there on one side of the fix only.
func when(there bool, plan ...[]poke.Step) []poke.Step {
	if !there {
		return nil
	}
	return slices.Concat(plan...)
}

// do is a step that is about nothing, or about the first patch.
func do(op poke.Op) []poke.Step { return one(poke.Step{Op: op, To: 1}) }

// undo is do towards the old text.
func undo(op poke.Op) []poke.Step { return one(poke.Step{Op: op, To: 1, Undo: true}) }

// write stores a part of the first patch.
func write(p poke.Part) []poke.Step { return one(poke.Step{Op: poke.Write, Part: p, To: 1}) }

// about is a plan about the first patch, made to be about the n-th, from 0.
func about(n int, plan []poke.Step) []poke.Step {
	for i := range plan {
		plan[i].From, plan[i].To = int32(n), int32(n)+1
	}
	return plan
}

// second is about the second patch.
func second(plan []poke.Step) []poke.Step { return about(1, plan) }

// round makes every other CPU fetch afresh.
func round(n uint8) []poke.Step { return one(poke.Step{Op: poke.Sync, Round: n, To: 1}) }

func lock(m poke.Mutex) []poke.Step   { return one(poke.Step{Op: poke.Lock, Mutex: m}) }
func unlock(m poke.Mutex) []poke.Step { return one(poke.Step{Op: poke.Unlock, Mutex: m}) }

// update is the plan of a protocol that is built in, batch by batch.
func (s *scene) update(protocol string, patches int, batches ...poke.Range) (plan []poke.Step) {
	p := poke.Named(protocol, s.m.Code.Traits)
	if len(batches) == 0 {
		batches = []poke.Range{{From: 0, To: patches}}
	}
	err := p.Compile(s.shape(patches), slices.Values(batches), func(st poke.Step) { plan = append(plan, st) })
	s.fail(err)
	return plan
}
