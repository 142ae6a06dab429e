// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"maps"
	"slices"
)

// Undo is the plan that takes back what a plan has done before it failed at step
// at, with done patches of that step written: afterwards every site is all old.
// The kernel has nothing like it: since Linux 5.6 a failure in the middle is
// BUG() on x86_64; arm64 and riscv64 stop at the first failure and leave earlier
// records new and later ones old (ftrace_replace_code, kernel/trace/ftrace.c).
//
// The old text is written while every CPU stands still. That is safe whatever the plan did,
// in whatever order: no CPU is inside of a handler then, and each fetches afresh before it
// goes on. It takes no round, however many batches there were.
func Undo(plan []Step, at int, done int32, s Shape) []Step {
	u := undo{shape: s}
	for _, st := range plan[:at] {
		u.follow(st)
	}
	u.write(plan[:min(at+1, len(plan))], at, done)
	u.letGo()
	return u.out
}

// undo is a way back being made, with the locks and the batch that the patcher has by then.
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

// write writes the old text over all that the steps have written. The one at index at was cut short after
// done patches: a store that failed has not changed its site.
func (u *undo) write(steps []Step, at int, done int32) {
	touched := map[int32]bool{}
	mapped := false
	for i, st := range steps {
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
		over := func(st Step) {
			st.From, st.To = p, p+1
			u.emit(st)
		}
		if mapped {
			u.fence() // stores go to the page that is mapped when they arrive
			over(Step{Op: Map})
		}
		if u.shape.Literals() {
			over(Step{Op: Write, Part: Literal, Undo: true})
		}
		over(Step{Op: Write, Part: Word, Undo: true})
	}
	u.fence()
	u.emit(Step{Op: Resume})
}

// fence makes stores visible, where they can wait.
func (u *undo) fence() {
	if u.shape.Traits.StoresBuffered {
		u.emit(Step{Op: Fence})
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
