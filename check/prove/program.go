// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// kind is what the patcher does at an item of its program.
type kind uint8

const (
	atStep     kind = iota // a step of the plan
	atRest                 // nothing; it sits nowhere
	atChoice               // it sits on a CPU, and chooses what to do with which sites
	enterBatch             // chooses the sites of the next batch
	leaveBatch             // the batch is through: another one, or on
	enterPatch             // chooses the next site of a loop over a batch
	leavePatch             // the site is through: another one, or on
	ifLast                 // on if no site is enabled any more, else behind the next finish
	finish                 // the update is over
)

var kindNames = [...]string{atRest: "rest", atChoice: "choose sites", enterBatch: "begin a batch",
	leaveBatch: "end a batch", enterPatch: "next site", leavePatch: "site is through",
	ifLast: "is that all?", finish: "update is over"}

// level is which of an update's sites a step is about.
type level uint8

const (
	ofUpdate level = iota
	ofBatch
	ofPatch
)

// The parts that a site can have in an update.
const (
	out     number = iota // none
	later                 // its batch is to come
	inBatch               // in the batch under way
	current               // which a loop over the batch has got to
	passed                // which that loop has been through
	through               // its batch is over
	numRoles
)

// covers are the roles of the sites that a step is about.
func (l level) covers() values {
	switch l {
	case ofPatch:
		return only(current)
	case ofBatch:
		return only(inBatch, current, passed)
	}
	return only(later, inBatch, current, passed, through)
}

// item is one place of a program.
type item struct {
	kind   kind
	at     int // of a step: in the plans
	level  level
	back   int    // of leaveBatch, leavePatch: where it began
	waits  number // of enterPatch, leavePatch: the role of the sites that the loop goes through
	undo   bool
	held   mutexes
	strays bool // a store may land in another site's page
}

// mutexes are locks that the patcher has, one bit each.
type mutexes uint16

func (m mutexes) has(mu poke.Mutex) bool { return m>>mu&1 != 0 }

// start is where an update begins.
type start struct {
	at       int
	undo     bool
	attaches bool
}

// spot is where a patcher is: at an item, having made so many accesses of its step.
type spot struct {
	item   uint16
	stage  uint8
	beside bool // another patcher has text_mutex
}

// to is another item of the program, before any of its accesses.
func (s spot) to(item int) spot { return spot{item: uint16(item), beside: s.beside} }

// program is what a patcher does for ever: it enables any of the sites, or disables
// any.
type program struct {
	plans  struct{ own, other []poke.Step } // about the view's site, and about another one
	items  []item
	starts []start
	wide   bool // what is published can hold the sites of several batches
}

// piece is a step of an update, or a border of a loop.
type piece struct {
	kind  kind
	level level
	step  poke.Step
}

// newProgram compiles the updates: to enable the first sites, to enable more of them, and
// to disable.
func newProgram(s *explore.Setup, code *cpus.Code, patches []poke.Patch) (*program, error) {
	p := &program{items: []item{{kind: atRest}, {kind: atChoice}}}
	shape := poke.Shape{Traits: code.Traits, Len: code.Len, Patches: 1}
	shape.Kept = patches[0].New.Slice(0, shape.Traits.BreakpointLen) == s.Arch.Breakpoint()
	if err := s.Protocol.Compile(shape, func(func(poke.Range) bool) {}, func(poke.Step) {}); err != nil {
		return nil, err
	}
	life := poke.Life{Patches: 1, Settles: s.Protocol.Settles(shape), Fenced: code.Traits.StoresBuffered}
	enable := s.Protocol.Outline(shape, s.Mutation)
	shape.Kept = patches[0].Old.Slice(0, shape.Traits.BreakpointLen) == s.Arch.Breakpoint()
	disable := s.Protocol.Outline(shape, s.Mutation)
	for _, o := range []*poke.Outline{&enable, &disable} {
		if err := fenced(o, shape.Traits); err != nil {
			return nil, err
		}
	}
	p.wide = slices.ContainsFunc(slices.Concat(enable.Before, enable.After), func(x poke.Stretch) bool {
		return !x.Each && slices.ContainsFunc(x.Steps, func(st poke.Step) bool { return st.Op == poke.Publish })
	})
	attach := life.Update(nil, false, true, false)
	settle := life.Update(nil, false, false, false)
	release := life.Update(nil, true, false, shape.Frees())
	x := updates{attach: steps(attach[:len(attach)-len(settle)]), enable: pieces(&enable), settle: steps(settle),
		disable: backwards(pieces(&disable)), back: backwards(steps(settle)),
		grace: backwards(section(disable.Detach, ofUpdate)), release: steps(release[len(settle):])}
	var err error
	if s.Patchers > 1 {
		x, err = x.besideOthers(s)
	}
	p.addEnable(x.attach, slices.Concat(x.enable, x.settle))
	p.addDisable(x.disable, x.grace, x.back, slices.Concat(x.back, x.release))
	p.markLocks()
	p.markStrays(s.Patchers > 1)
	end := poke.Step{Op: poke.Raise} // so that no step is the last
	p.plans.own, p.plans.other = append(p.plans.own, end), append(p.plans.other, end)
	return p, cmp.Or(err, p.shares(s.Patchers > 1))
}

// updates are the two, in parts: what changes text, what comes before and behind it, and what the last tracer
// waits for and releases. Both promise what settle and back say.
type updates struct{ attach, enable, settle, disable, back, grace, release []piece }

// steps are steps about all sites of an update.
func steps(list []poke.Step) (out []piece) {
	for _, st := range list {
		out = append(out, piece{step: st})
	}
	return out
}

// pieces are an outline's sections, without those that are only for the last tracer.
func pieces(o *poke.Outline) []piece {
	return slices.Concat(section(o.Before, ofUpdate), []piece{{kind: enterBatch}}, section(o.Batch, ofBatch),
		[]piece{{kind: leaveBatch}}, section(o.After, ofUpdate))
}

// section is one of an outline's, about the sites of the whole update or of a batch.
func section(list []poke.Stretch, about level) (out []piece) {
	for _, x := range list {
		of := about
		if len(x.Steps) == 0 {
			continue
		}
		if x.Each {
			of = ofPatch
			out = append(out, piece{kind: enterPatch})
		}
		for _, st := range x.Steps {
			out = append(out, piece{step: st, level: of})
		}
		if x.Each {
			out = append(out, piece{kind: leavePatch})
		}
	}
	return out
}

// backwards leads to the old text.
func backwards(list []piece) []piece {
	for i := range list {
		if list[i].kind == atStep {
			list[i].step = poke.Backwards([]poke.Step{list[i].step})[0]
		}
	}
	return list
}

// addEnable appends the update that enables sites. An update that finds none enabled attaches
// the ops first: only this one makes the steps of attach, above all a fence.
func (p *program) addEnable(attach, plan []piece) {
	from := len(p.items)
	p.starts = append(p.starts, start{at: from, attaches: true}, start{at: from + len(attach)})
	p.add(slices.Concat(attach, plan, []piece{{kind: finish}}), false)
}

// addDisable appends the update that disables sites. Only the last one waits for a grace
// period and releases the tracer.
func (p *program) addDisable(plan, grace, keeps, release []piece) {
	end := []piece{{kind: finish}}
	last := slices.Concat([]piece{{kind: ifLast}}, grace, release, end, keeps, end)
	p.starts = append(p.starts, start{at: len(p.items), undo: true})
	p.add(slices.Concat(plan, last), true)
}

// add appends an update.
func (p *program) add(pieces []piece, undo bool) {
	var open []int
	wait := later // how sites stand in this section that are in no loop
	for _, x := range pieces {
		it := item{kind: x.kind, level: x.level, at: -1, undo: undo}
		switch x.kind {
		case enterBatch:
			wait, open = inBatch, append(open, len(p.items))
		case enterPatch:
			open = append(open, len(p.items))
		case leaveBatch:
			wait = through
			fallthrough
		case leavePatch:
			it.back = open[len(open)-1]
			open = open[:len(open)-1]
		case atStep:
			it.at = len(p.plans.own)
			other := x.step
			if other.To > other.From {
				other.From, other.To = 1, 2
			}
			p.plans.own, p.plans.other = append(p.plans.own, x.step), append(p.plans.other, other)
		}
		it.waits = wait
		p.items = append(p.items, it)
	}
}

// markLocks tells at each item which locks are held there. Plans give a lock back in the turn of a loop, or the
// update, in which they take it: others are no plans.
func (p *program) markLocks() {
	var held, last mutexes // here, and where the ways part for the last tracer and others
	for i := range p.items {
		it := &p.items[i]
		it.held = held
		switch it.kind {
		case ifLast:
			last = held
		case finish:
			held, last = last, 0
		case atStep:
			switch st := &p.plans.own[it.at]; st.Op {
			case poke.Lock:
				held |= 1 << st.Mutex
			case poke.Unlock:
				held &^= 1 << st.Mutex
			}
		}
	}
}

// ShapeError is a plan or a path that no view can tell.
type ShapeError struct{ Reason string }

func (e *ShapeError) Error() string { return e.Reason }

// markStrays finds the stores that may land in another site's page. A step Map maps the page of the site whose turn it is;
// until the next one, in whatever turn, update or patcher, stores go there. So a plan that maps pages maps each before it
// stores, in the same turn. Several patchers map pages under text_mutex alone, and do not let it go before they store.
func (p *program) markStrays(several bool) {
	maps, loose, mapped := false, false, false // somewhere, without text_mutex, since the turn began
	for i := range p.items {
		it := &p.items[i]
		var st poke.Step
		if it.kind == atStep {
			st = p.plans.own[it.at]
		}
		switch lets := st.Op == poke.Unlock && st.Mutex == poke.TextMutex; {
		case it.kind == enterPatch || it.kind == leavePatch || several && lets:
			mapped = false
		case st.Op == poke.Map:
			maps, loose, mapped = true, loose || several && !it.held.has(poke.TextMutex), true
		case st.Op == poke.Write && !st.WritesLiteral():
			it.strays = !mapped
		}
	}
	for i := range p.items {
		p.items[i].strays = maps && (p.items[i].strays || loose && p.items[i].kind == atStep)
	}
}

// fenced refuses tables that wait in a store buffer while anything else is done: no view
// tells that they do. Where a step that pushes them out comes next, it makes no difference
// whether they wait until then.
//
// The ops of a tracer is fenced when it is attached (poke.Life). The next one is attached, in
// the same place, only after the release.
func fenced(o *poke.Outline, t isa.Traits) error {
	if !t.StoresBuffered {
		return nil
	}
	list := append(pieces(o), section(o.Detach, ofUpdate)...)
	for i, x := range list {
		if x.kind != atStep || x.step.Op != poke.Publish && x.step.Op != poke.Unpublish {
			continue
		}
		next := i + 1
		for next < len(list) && (list[next].kind == enterBatch || list[next].kind == enterPatch) {
			next++ // there is a batch, and a patch in it
		}
		if next == len(list) || list[next].kind != atStep || !pushes(list[next].step.Op) {
			return &ShapeError{x.step.Name() + " without a fence behind it: no view tells that it waits in a store buffer"}
		}
	}
	return nil
}

// pushes tells whether a step waits until tables are visible, before it does anything.
func pushes(op poke.Op) bool {
	switch op {
	case poke.Fence, poke.WaitHandlers, poke.Clear, poke.GracePeriod, poke.SynchronizeRCU, poke.Unlock:
		return true
	}
	return false
}
