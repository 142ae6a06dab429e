// SPDX-License-Identifier: Apache-2.0

package poke

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
			steps = held(lines, s.of(one))
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
func held(lines []planLine, s Shape) (steps []Step) {
	for _, l := range lines {
		if holdAll(l.when, s) {
			steps = append(steps, l.step)
		}
	}
	return steps
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
