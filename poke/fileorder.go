// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"fmt"
)

// order follows a plan and finds steps that cannot be carried out: giving back a reference that was
// not taken, taking one that is never given back, waiting for ever. Everything taken inside a
// batch, or inside a loop over its patches, must be given back there: the next one takes it again.
type order struct {
	shape  Shape
	frames []int // lines that began what is being repeated; 0 for the plan itself

	batch   taken // published
	left    bool  // and handlers may still be inside, though none can enter any more
	cleared bool  // and forgotten
	stop    taken
	locks   [NumMutexes]taken

	rounds     map[uint8]int // lines
	deadlock   int           // line of the first round inside stop_machine, 0 for none
	published  bool          // anything, at any time
	breakpoint int           // line of the first one, 0 for none
	written    bool
}

// taken is where something was taken.
type taken struct{ line, frame int }

func (t taken) is() bool { return t.line > 0 }

// misplaced is what is wrong with a line.
type misplaced struct {
	line   int
	reason string
}

func misplace(line int, format string, args ...any) *misplaced {
	return &misplaced{line, fmt.Sprintf(format, args...)}
}

// fits tells what is wrong with the plan on sites of a shape, nil if nothing is,
// and which line sends a round inside stop_machine, 0 for none.
func (f *planFile) fits(s Shape) (wrong *PlanError, deadlock int) {
	o := &order{shape: s, rounds: map[uint8]int{}}
	if m := o.walk(f); m != nil {
		return f.wrong(m.line, "%s", m.reason), 0
	}
	if _, wrong := f.pathOn(s, false); wrong != nil {
		return wrong, 0
	}
	return nil, o.deadlock
}

// walk follows the sections.
func (o *order) walk(f *planFile) *misplaced {
	for i, section := range f.sections {
		var wrong *misplaced
		if i == everyBatch {
			wrong = o.repeat(section.line, section.lines)
		} else {
			wrong = o.lines(section.lines)
		}
		if wrong != nil {
			return wrong
		}
	}
	return o.end(f.sections[everyBatch].line)
}

// end holds what must be true of a whole plan.
func (o *order) end(line int) *misplaced {
	switch {
	case !o.written:
		return misplace(line, "nothing is written: want a step such as %q", Step{Op: Write, Part: Word}.spelled())
	case o.breakpoint > 0 && !o.published:
		return misplace(o.breakpoint, "Write breakpoint: nothing is ever published: no handler would find the batch "+
			"of a CPU that runs into it")
	}
	return o.givenBack(0)
}

// canEnd tells whether a plan without loops gives back exactly the locks and batches that
// it takes.
func canEnd(plan []Step, s Shape) bool {
	o := &order{shape: s, rounds: map[uint8]int{}}
	for i, st := range plan {
		if o.step(i+1, st) != nil {
			return false
		}
	}
	return o.end(len(plan)) == nil
}

// spelled is the step as a file spells it, without its patches.
func (s Step) spelled() string {
	switch s.Op {
	case Write:
		return s.Name()
	case Publish, Map:
		return s.Op.String()
	}
	return s.String()
}

// repeat follows what is carried out again and again.
func (o *order) repeat(line int, lines []planLine) *misplaced {
	o.frames = append(o.frames, line)
	wrong := o.lines(lines)
	if wrong == nil {
		wrong = o.givenBack(len(o.frames))
	}
	o.frames = o.frames[:len(o.frames)-1]
	return wrong
}

func (o *order) lines(lines []planLine) *misplaced {
	for _, l := range lines {
		var wrong *misplaced
		switch {
		case l.loop:
			wrong = o.repeat(l.line, l.each)
		case holdAll(l.when, o.shape):
			wrong = o.step(l.line, l.step)
		}
		if wrong != nil {
			return wrong
		}
	}
	return nil
}

// givenBack holds that a frame has given back all that it has taken.
func (o *order) givenBack(frame int) *misplaced {
	again := "the next update"
	if frame > 0 {
		again = fmt.Sprintf("the next time through line %d", o.frames[frame-1])
	}
	if t := o.batch; t.is() && t.frame == frame {
		if o.left {
			return misplace(t.line, "Publish: no step waits for the handlers (WaitHandlers) or forgets the batch (Clear), "+
				"and %s could not publish", again)
		}
		return misplace(t.line, "Publish: no step takes the batch away again (Unpublish), and %s could not publish", again)
	}
	if t := o.stop; t.is() && t.frame == frame {
		return misplace(t.line, "StopMachine: nothing lets the CPUs go on (Resume), and %s would wait for ever", again)
	}
	for m, t := range o.locks {
		if t.is() && t.frame == frame {
			return misplace(t.line, "Lock %s: nothing gives it back (Unlock), and %s would wait for ever", Mutex(m), again)
		}
	}
	return nil
}

// take notes that something was taken; release that it is given back, or what is
// wrong with that.
func (o *order) take(t *taken, line int) { *t = taken{line, len(o.frames)} }

func (o *order) release(t *taken, line int, st Step) *misplaced {
	if wrong := o.outside(*t, line, st); wrong != nil {
		return wrong
	}
	*t = taken{}
	return nil
}

// outside refuses a step in a loop that gives back what was taken once, before the loop.
func (o *order) outside(t taken, line int, st Step) *misplaced {
	if t.frame == len(o.frames) {
		return nil
	}
	return misplace(line, "%s: line %d is outside of what line %d repeats: only the first time there would be "+
		"something to give back",
		st.spelled(), t.line, o.frames[len(o.frames)-1])
}

// step follows one step.
func (o *order) step(line int, st Step) *misplaced {
	switch st.Op {
	case Write:
		return o.write(line, st)
	case Sync:
		if first, ok := o.rounds[st.Round]; ok {
			return misplace(line, "%s: line %d is round %d already", st.spelled(), first, st.Round)
		}
		o.rounds[st.Round] = line
		if o.stop.is() && o.deadlock == 0 {
			o.deadlock = line
		}
	case Publish, Unpublish, WaitHandlers, Clear:
		return o.handlers(line, st)
	case StopMachine:
		if o.stop.is() {
			return misplace(line, "StopMachine: the CPUs stand still since line %d, and would never arrive a second "+
				"time", o.stop.line)
		}
		o.take(&o.stop, line)
	case Resume:
		if !o.stop.is() {
			return misplace(line, "Resume: no CPU stands still here: there is no StopMachine before it")
		}
		return o.release(&o.stop, line, st)
	case GracePeriod, SynchronizeRCU:
		if o.stop.is() {
			return misplace(line, "%s: the CPUs stand still since line %d, and none of them could say that it has left "+
				"its trampoline", st.Op, o.stop.line)
		}
	case Lock:
		if t := &o.locks[st.Mutex]; t.is() {
			return misplace(line, "%s: line %d has taken it, and no other patcher would give it back", st, t.line)
		}
		o.take(&o.locks[st.Mutex], line)
	case Unlock:
		t := &o.locks[st.Mutex]
		if !t.is() {
			return misplace(line, "%s: it is not taken here: there is no Lock %s before it", st, st.Mutex)
		}
		return o.release(t, line, st)
	}
	return nil
}

// write holds that a store stays inside of its site.
func (o *order) write(line int, st Step) *misplaced {
	s := o.shape
	switch st.Part {
	case Breakpoint:
		if o.breakpoint == 0 {
			o.breakpoint = line
		}
	case Tail:
		if !s.Tail() {
			return misplace(line, "Write tail: a site has no tail: a breakpoint covers all of its %d bytes (write "+
				"\"Write tail if tail\")", s.Len)
		}
	case Bytes:
		if int(st.Span.To) > s.Len {
			return misplace(line, "%s: a site has %d bytes", st.Name(), s.Len)
		}
	case Literal, LiteralLow, LiteralHigh:
		if !s.Literals() {
			return misplace(line, "Write %s: a site has no literal (write \"Write %s if literal\")", st.Part, st.Part)
		}
	}
	o.written = true
	return nil
}

// handlers follows what trap handlers find.
func (o *order) handlers(line int, st Step) *misplaced {
	published := o.batch.is() && !o.left
	switch {
	case st.Op == Publish && o.batch.is():
		return misplace(line, "Publish: line %d has published already, and that batch must be taken away first "+
			"(Unpublish, then WaitHandlers or Clear)", o.batch.line)
	case st.Op == Publish:
		o.published = true
		o.take(&o.batch, line)
		return nil
	case !o.batch.is():
		return misplace(line, "%s: nothing is published here: there is no Publish before it", st.Op)
	case st.Op == Unpublish && o.left:
		return misplace(line, "Unpublish: the batch of line %d has been taken away already", o.batch.line)
	case st.Op == WaitHandlers && published:
		return misplace(line, "WaitHandlers: the batch of line %d can still be found: handlers would enter for ever "+
			"(Unpublish first)", o.batch.line)
	}
	if wrong := o.outside(o.batch, line, st); wrong != nil {
		return wrong
	}
	o.left = o.left || st.Op == Unpublish
	o.cleared = o.cleared || st.Op == Clear
	if st.Op == WaitHandlers || o.left && o.cleared {
		o.left, o.cleared = false, false
		return o.release(&o.batch, line, st)
	}
	return nil
}
