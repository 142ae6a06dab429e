// SPDX-License-Identifier: Apache-2.0

package poke

import (
	"math/bits"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Life is how a tracer's life is told as one program.
type Life struct {
	Patches int  // that it changes
	Settles bool // the protocol ends with the promise that no CPU executes replaced text; see Protocol.Settles
	// text_mutex is held while text is changed, unless the plan takes it itself, and ftrace_lock while an ops is got rid
	// of
	Locked bool
	// Fenced: a fence makes an ops visible before text can name it. Registering a tracer
	// takes and gives back ftrace_lock (register_ftrace_function), and what maps text to
	// write to it ends in a barrier: dsb(ishst) in set_pte (arch/arm64/include/asm/pgtable.h).
	Fenced bool
}

// Toggle is a tracer's whole life: its ops is attached, the plan enable makes all
// sites call it, the plan disable (of the same patches, compiled as if they were
// the other way round) takes that back, and the ops is released.
func (l Life) Toggle(enable, disable []Step) []Step {
	return append(l.Update(enable, false, true, false), l.Update(disable, true, false, true)...)
}

// Update is one update of many: the plan, with its promise; undo: of the same patches,
// compiled as if they were the other way round. attach: the ops that it leads to is
// attached before; release: nothing is left that leads to the other one, which is
// released.
func (l Life) Update(plan []Step, undo, attach, release bool) (out []Step) {
	if attach {
		out = append(out, l.around(Attach, undo))
		if l.Fenced {
			out = append(out, Step{Op: Fence})
		}
	}
	if undo {
		plan = Backwards(plan)
	}
	return append(out, l.change(plan, undo, release)...)
}

// change is a plan with its locks and its promise around it; release: it also gets rid of an ops.
func (l Life) change(plan []Step, undo, release bool) (out []Step) {
	if !l.Locked {
		out = append(out, plan...)
		if l.Settles {
			out = append(out, l.around(Settle, undo))
		}
		if release {
			out = append(out, l.around(Release, undo))
		}
		return out
	}
	text, grace := plan, []Step(nil)
	if n := len(plan); n > 0 && plan[n-1].Op == GracePeriod {
		text, grace = plan[:n-1], plan[n-1:]
	}
	if !slices.ContainsFunc(plan, func(s Step) bool { return s.Op == Lock && s.Mutex == TextMutex }) {
		text = slices.Concat([]Step{{Op: Lock, Mutex: TextMutex}}, text, []Step{{Op: Unlock, Mutex: TextMutex}})
	}
	// The promise is made before another patcher can change the same sites.
	for i := len(text) - 1; ; i-- {
		if text[i].Op == Unlock && text[i].Mutex == TextMutex {
			out = append(out, text[:i]...)
			if l.Settles {
				out = append(out, l.around(Settle, undo))
			}
			out = append(out, text[i:]...)
			break
		}
	}
	if release {
		out = append(out, Step{Op: Lock, Mutex: FtraceLock})
		out = append(out, grace...)
		out = append(out, l.around(Release, undo), Step{Op: Unlock, Mutex: FtraceLock})
	}
	return out
}

// around is a step about all patches.
func (l Life) around(op Op, undo bool) Step {
	return Step{Op: op, Undo: undo, To: int32(l.Patches)}
}

// Backwards is a plan with old and new text exchanged.
func Backwards(plan []Step) []Step {
	out := make([]Step, len(plan))
	for i, s := range plan {
		s.Undo = s.Undo != s.Op.undoes()
		out[i] = s
	}
	return out
}

// Menu is what a patcher chooses from that goes on for ever: the updates whose steps lie
// one behind the other in its plan. Between two of them the patcher stands at the plan's
// end. The first of its patches are one for each of its sites, whatever the updates are
// about.
type Menu []Choice

// Choice is one update of a Menu: steps [From, To) of the plan, and what there must be at
// the patcher's sites.
type Choice struct {
	From, To int
	Sites    uint64 // the patches, one bit each, whose sites it changes
	Undo     bool   // towards the old text
	When     Guard
}

// Guard is what a patcher's sites must hold, where the i-th bit stands for its i-th patch.
type Guard struct {
	Old, New         uint64 // these hold their old text, their new one
	SomeOld, SomeNew uint64 // of these at least one does, if there are any
}

// met tells whether sites are as they must be.
func (w Guard) met(old, new uint64) bool {
	return w.Old&^old == 0 && w.New&^new == 0 &&
		(w.SomeOld == 0 || w.SomeOld&old != 0) && (w.SomeNew == 0 || w.SomeNew&new != 0)
}

// Starts is where a patcher stands at first.
func (m Menu) Starts(plan []Step) int {
	if m == nil {
		return 0
	}
	return len(plan)
}

// Between tells whether the patcher is between two updates, or behind the only one.
func (p *Patcher) Between() bool { return p.At == len(p.Plan) }

// Endless tells whether the patcher goes on for ever.
func (p *Patcher) Endless() bool { return p.Menu != nil }

// Ready calls f with every update of the menu that can come next.
func (p *Patcher) Ready(g Ground, f func(c *Choice)) {
	var looked, old, new uint64
	for i := range p.Menu {
		w := p.Menu[i].When
		looked |= w.Old | w.New | w.SomeOld | w.SomeNew
	}
	for i := range bits.Len64(looked) {
		if p.finds(g, i, true) {
			old |= 1 << i
		}
		if p.finds(g, i, false) {
			new |= 1 << i
		}
	}
	for i := range p.Menu {
		if c := &p.Menu[i]; c.When.met(old, new) {
			f(c)
		}
	}
}

// finds tells whether a patch's site holds what it leads from (old) or to, as the patcher
// itself sees it. Where sites have literals these tell texts apart that are equal.
func (p *Patcher) finds(g Ground, patch int, old bool) bool {
	is := &p.Patches[patch]
	text := place{kind: siteText, site: is.Site}
	if p.buffer.over(text, g.Peek(int(is.Site))) != is.text(old) {
		return false
	}
	literal := place{kind: siteLiteral, site: is.Site}
	return !p.Code.Literals() || uint64(p.buffer.over(literal, isa.Text(g.Literal(int(is.Site))))) == is.Ops(old)
}

// choose begins one of the updates that can come next. A patcher knows what its sites
// hold: its looking is no access.
func (p *Patcher) choose(g Ground, ch cpus.Chooser) Status {
	n := 0
	p.Ready(g, func(*Choice) { n++ })
	if n == 0 {
		return Waits
	}
	k := ch.Choose(cpus.ChooseUpdate, n)
	p.Ready(g, func(c *Choice) {
		if k == 0 {
			p.At = c.From
		}
		k--
	})
	return Ran
}

// Follows tells whether an update can come right after another one that has left its
// sites as it says.
func (c *Choice) Follows(u *Choice) bool {
	old, new := u.When.Old&^u.Sites, u.When.New&^u.Sites
	if u.Undo {
		old |= u.Sites
	} else {
		new |= u.Sites
	}
	w := &c.When
	return w.Old&new == 0 && w.New&old == 0 &&
		(w.SomeOld == 0 || w.SomeOld&^new != 0) && (w.SomeNew == 0 || w.SomeNew&^old != 0)
}

// Stretch is a run of a plan's steps that belong together: made once, or again for each
// patch of the batch, one patch after the other.
type Stretch struct {
	Each  bool
	Steps []Step // about patch 0 where they are about patches
}

// Outline is the plan of an update before its batches and its loops are unrolled. Compile
// makes the steps in this order: Before, Batch once for each batch, After, Detach.
type Outline struct {
	Before, Batch, After []Stretch
	Detach               []Stretch // only where Shape.Detach says that the ops goes
}

// Outline is the plan for patches that are all of the shape s, with a defect in it. A
// defect that looks at the step before sees the one that stands before it here.
func (p *Protocol) Outline(s Shape, m Mutation) (o Outline) {
	var to *[]Stretch
	emit := m.Through(func(st Step) {
		last := &(*to)[len(*to)-1]
		last.Steps = append(last.Steps, st)
	})
	section := func(into *[]Stretch, each bool, lines []planLine) {
		to = into
		*to = append(*to, Stretch{Each: each})
		for _, st := range held(lines, s) {
			emit(st.about(Range{0, 1}))
		}
	}
	section(&o.Before, false, nil)
	emit(Step{Op: Verify, To: 1})
	for i, into := range []*[]Stretch{&o.Before, &o.Batch, &o.After} {
		for lines := p.says.sections[i].lines; len(lines) > 0; {
			n := untilLoop(lines)
			section(into, false, lines[:n])
			if lines = lines[n:]; len(lines) > 0 {
				section(into, true, lines[0].each)
				lines = lines[1:]
			}
		}
	}
	section(&o.Detach, false, nil)
	emit(Step{Op: GracePeriod})
	return o
}

// unroll emits lines about a range of patches.
func unroll(lines []planLine, s Shape, r Range, emit Emit) {
	for len(lines) > 0 {
		n := untilLoop(lines)
		for _, st := range held(lines[:n], s) {
			emit(st.about(r))
		}
		if lines = lines[n:]; len(lines) == 0 {
			return
		}
		turn(lines[0].each, s, r, emit)
		lines = lines[1:]
	}
}

// turn emits the lines of a loop once for each patch of a range.
func turn(lines []planLine, s Shape, r Range, emit Emit) {
	steps := held(lines, s)
	for i := r.From; i < r.To; i++ {
		one := Range{i, i + 1}
		if s.Entry != nil { // what holds of all patches need not hold of each
			steps = held(lines, s.Of(one))
		}
		for _, st := range steps {
			emit(st.about(one))
		}
	}
}

// untilLoop is how many lines there are before the first loop.
func untilLoop(lines []planLine) int {
	for i, l := range lines {
		if l.loop {
			return i
		}
	}
	return len(lines)
}

// held are the steps of lines whose conditions hold of sites of a shape.
func held(lines []planLine, s Shape) []Step {
	there := spelling.Where(lines, func(l planLine) bool { return holdAll(l.when, s) })
	return spelling.Each(there, func(l planLine) Step { return l.step })
}

// about is the step about a range of patches, where it is about patches.
func (s Step) about(r Range) Step {
	if s.Op.aboutPatches() {
		s.From, s.To = int32(r.From), int32(r.To)
	}
	return s
}

// aboutPatches tells whether steps of this kind carry the patches of their batch.
func (o Op) aboutPatches() bool {
	switch o {
	case Verify, Publish, Write, Sync, Unpublish, WaitHandlers, Clear, Map:
		return true
	}
	return false
}
