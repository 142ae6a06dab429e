// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"maps"
	"slices"
)

// undo is a way back being made, and what the patcher has taken by then.
type undo struct {
	shape Shape
	out   []Step

	stopped   bool
	published bool
	left      bool // handlers may still be inside, though none can enter any more
	locks     []Mutex
}

// emit adds a step to the way back.
func (u *undo) emit(st Step) {
	u.out = append(u.out, st)
	u.follow(st)
}

// follow notes what a step takes or gives back.
func (u *undo) follow(st Step) {
	switch st.Op {
	case StopMachine, Resume:
		u.stopped = st.Op == StopMachine
	case Publish:
		u.published = true
	case Unpublish:
		u.published, u.left = false, true
	case WaitHandlers:
		u.left = false
	case Lock:
		u.locks = append(u.locks, st.Mutex)
	case Unlock:
		u.locks = slices.DeleteFunc(u.locks, func(m Mutex) bool { return m == st.Mutex })
	}
}

// letGo gives back whatever is taken, when no breakpoint is left.
func (u *undo) letGo() {
	if u.stopped {
		u.emit(Step{Op: Resume})
	}
	if u.published {
		u.emit(Step{Op: Unpublish})
	}
	if u.left {
		u.emit(Step{Op: WaitHandlers})
	}
	for len(u.locks) > 0 {
		u.emit(Step{Op: Unlock, Mutex: u.locks[len(u.locks)-1]})
	}
}

// standingStill writes the old text over whatever was written, in stop_machine.
// No CPU is inside of a handler then, and each fetches afresh before it goes on.
func (u *undo) standingStill(plan []Step, at int, done int32) {
	touched := map[int32]bool{}
	mapped := false
	for i, st := range plan[:min(at+1, len(plan))] {
		mapped = mapped || st.Op == Map
		if st.Op != Write {
			continue
		}
		if i == at {
			st.To = st.From + done
		}
		for p := st.From; p < st.To; p++ {
			touched[p] = true
		}
	}
	if len(touched) == 0 {
		return
	}
	if !u.stopped {
		u.emit(Step{Op: StopMachine})
	}
	for _, p := range slices.Sorted(maps.Keys(touched)) {
		over := Range{int(p), int(p) + 1}.over(u.emit)
		if mapped {
			fence(u.shape, u.emit) // stores go to the page that is mapped when they arrive
			over(Step{Op: Map})
		}
		if u.shape.Literals() {
			over(Step{Op: Write, Part: Literal, Undo: true})
		}
		over(Step{Op: Write, Part: Word, Undo: true})
	}
	fence(u.shape, u.emit)
	u.emit(Step{Op: Resume})
}

// regular tells whether a plan has the form of the built-in protocols, perhaps
// with a defect in it: batches behind breakpoints, each published by itself, or no
// breakpoints at all; everything perhaps inside stop_machine or under locks.
func regular(plan []Step) bool {
	var writes, publishes bool
	for _, st := range plan {
		writes = writes || st.Op == Write
		publishes = publishes || st.Op == Publish
		switch st.Op {
		case Write:
			if st.Part == Bytes { // no part of a built-in protocol
				return false
			}
		case Verify, Publish, Fence, Sync, Unpublish, WaitHandlers, GracePeriod:
		case StopMachine, Lock:
			if writes || publishes {
				return false
			}
		case Resume, Unlock: // nothing may be written behind it
		default:
			return false
		}
	}
	let := false
	for _, st := range plan {
		let = let || st.Op == Resume || st.Op == Unlock
		if let && (st.Op == Write || st.Op == Publish) {
			return false
		}
	}
	if !publishes {
		return !slices.ContainsFunc(plan, func(st Step) bool { return st.Op == Write && st.Part == Breakpoint })
	}
	batches, _ := split(plan)
	return !slices.ContainsFunc(batches, func(b span) bool { return !regularBatch(plan[b.from:b.to]) })
}

// regularBatch tells whether a batch publishes itself once, and writes each part
// of its sites at most once: heads and tails behind breakpoints that are gone in
// the end, or whole sites.
func regularBatch(steps []Step) bool {
	var ops [len(opNames)]int
	var parts [Bytes + 1]int
	for _, st := range steps {
		ops[st.Op]++
		if (st.Op == Write || st.Op == Publish) && ops[Unpublish] != ops[WaitHandlers] {
			return false // what goes back would be published before the handlers have left
		}
		if st.Op != Write {
			continue
		}
		if parts[st.Part]++; parts[st.Part] > 1 {
			return false
		}
		if (st.Part == Head || st.Part == Tail) && parts[Breakpoint] == 0 {
			return false
		}
	}
	return ops[Publish] == 1 && parts[Breakpoint] == parts[Head] && parts[Breakpoint]+parts[Word] <= 1 &&
		parts[LiteralLow] == parts[LiteralHigh]
}
