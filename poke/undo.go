// SPDX-License-Identifier: Apache-2.0

package poke

// Undo is the plan that takes back what a plan has done before it failed at step
// at, with done patches of that step written: afterwards every site is all old.
// The kernel has nothing like it: since Linux 5.6 a failure in the middle is
// BUG() on x86_64; arm64 and riscv64 stop at the first failure and leave earlier
// records new and later ones old (ftrace_replace_code, kernel/trace/ftrace.c).
//
// The batch in flight goes back behind its breakpoints, batches that were
// finished go back by the protocol that changed them, the last one first. That
// is for plans of the built-in protocols' form, with their defects. Others go
// back while every CPU stands still: whatever a plan did, that is safe.
func Undo(plan []Step, at int, done int32, s Shape) []Step {
	return takenBack(plan, at, done, s, regular(plan))
}

// UndoStanding is Undo while every CPU stands still, whatever the plan's form: without a
// round, where the protocol's own way back would take many.
func UndoStanding(plan []Step, at int, done int32, s Shape) []Step {
	return takenBack(plan, at, done, s, false)
}

func takenBack(plan []Step, at int, done int32, s Shape, backwards bool) []Step {
	u := undo{shape: s}
	for _, st := range plan[:at] {
		u.follow(st)
	}
	if backwards {
		u.backwards(plan, at, done)
	} else {
		u.standingStill(plan, at, done)
	}
	u.letGo()
	return u.out
}

// backwards takes a regular plan back.
func (u *undo) backwards(plan []Step, at int, done int32) {
	batches, end := split(plan)
	for i := len(batches) - 1; i >= 0; i-- {
		b := batches[i]
		switch {
		case b.from > at: // not begun
		case b.to <= at || !b.traps: // finished, or safe to replay
			replay(plan[b.from:min(b.to, at+1)], at-b.from, done, u.emit)
		default:
			undoPhases(plan[b.from:at+1], done, u.shape, u.emit)
		}
	}
	if len(u.out) == 0 { // nothing was written
		return
	}
	if u.out[len(u.out)-1].Op == Write {
		fence(u.shape, u.emit) // the one behind these stores was not reached
	}
	for _, st := range plan[end:] {
		if st.Op != GracePeriod { // the ops stays attached, or was never
			u.emit(st)
		}
	}
}

// span is the steps [from, to) of one batch; traps: it works with breakpoints.
type span struct {
	from, to int
	traps    bool
}

// split finds the batches of a plan, and where what comes after the last one
// begins. Where batches are published, consecutive steps about the same patches
// are one, in whatever order a mutation left them; else everything between
// opening and closing.
func split(plan []Step) (batches []span, end int) {
	if begun(plan, len(plan), Publish) {
		var last *span
		for i, st := range plan {
			switch st.Op {
			case Verify, GracePeriod, Fence, Lock, Unlock:
				continue
			}
			if last == nil || st.From != plan[last.from].From || st.To != plan[last.from].To {
				batches = append(batches, span{from: i, traps: true})
				last = &batches[len(batches)-1]
			}
			last.to, end = i+1, i+1
		}
		return batches, end
	}
	from := 0
	for from < len(plan) && plan[from].Op != Write {
		from++
	}
	end = from
	for i := from; i < len(plan); i++ {
		if st := plan[i]; st.Op == Write {
			end = i + 1
			for end < len(plan) && (plan[end].Op == Fence || plan[end].Op == Sync && plan[end].Round == 1) {
				end++
			}
		}
	}
	return []span{{from: from, to: end}}, end
}

// replay takes writes back in the order in which they were made: protocols that
// are safe in one direction are safe in the other. Step last was cut short after
// done patches; a store that failed changed nothing.
func replay(steps []Step, last int, done int32, emit Emit) {
	for i, st := range steps {
		if i == last && st.Op == Write {
			if done == 0 {
				continue
			}
			st.To = st.From + done
		}
		st.Undo = st.Op == Write || st.Op == Publish
		emit(st)
	}
}

// undoPhases takes an unfinished batch back: breakpoints over what is new
// already, then the old tails, then the old heads. steps are those begun, the
// last one cut short after done patches. A mutation may have taken the batch
// away already, or not have published it yet: then it is published first.
func undoPhases(steps []Step, done int32, s Shape, emit Emit) {
	batch := Range{int(steps[0].From), int(steps[0].To)}
	written, published := progress(steps, done)
	part := func(p Part, n int) {
		if n > 0 {
			emit(Step{Op: Write, Part: p, Undo: true, From: int32(batch.From), To: int32(batch.From + n)})
		}
	}
	sync := func(n uint8) {
		fence(s, emit)
		batch.over(emit)(Step{Op: Sync, Round: n})
	}
	if !published && written[Breakpoint]+written[Word] > 0 {
		batch.over(emit)(Step{Op: Publish, Undo: true})
		fence(s, emit)
		published = true
	}
	if n := written[Head]; n > 0 {
		part(Breakpoint, n)
		sync(1)
	}
	if written[Tail]+written[Literal]+written[LiteralLow] > 0 {
		part(Tail, written[Tail])
		part(Literal, max(written[Literal], written[LiteralLow]))
		sync(2)
	}
	if written[Breakpoint]+written[Word] > 0 {
		part(Head, written[Breakpoint])
		part(Word, written[Word])
		sync(3)
	}
	if published {
		batch.over(emit)(Step{Op: Unpublish})
		batch.over(emit)(Step{Op: WaitHandlers})
	}
}

// progress is how many patches of each part were written, and whether the batch
// is published, after steps of which the last one failed after done patches.
func progress(steps []Step, done int32) (written [Bytes + 1]int, published bool) {
	for i, st := range steps {
		failed := i == len(steps)-1
		switch {
		case st.Op == Write && failed:
			written[st.Part] = int(done)
		case st.Op == Write:
			written[st.Part] = int(st.To - st.From)
		case st.Op == Publish && !failed:
			published = true
		case st.Op == Unpublish:
			published = false
		}
	}
	return written, published
}

// begun tells whether a plan that failed at step at had executed an op.
func begun(plan []Step, at int, op Op) bool {
	for _, st := range plan[:at] {
		if st.Op == op {
			return true
		}
	}
	return false
}

// over emits steps about the whole range.
func (r Range) over(emit Emit) Emit {
	return func(s Step) {
		s.From, s.To = int32(r.From), int32(r.To)
		emit(s)
	}
}

// fence emits one where stores can wait.
func fence(s Shape, emit Emit) {
	if s.Traits.StoresBuffered {
		emit(Step{Op: Fence})
	}
}
