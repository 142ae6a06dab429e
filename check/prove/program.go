// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"fmt"
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
	ifLast                 // on where nobody is traced any more, else to what is behind the next finish
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
	out     uint8 = iota // none
	later                // its batch is to come
	inBatch              // in the batch under way
	current              // which a loop over the batch has got to
	passed               // which that loop has been through
	through              // its batch is over
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

// item is one place of a program, and what is there.
type item struct {
	kind  kind
	at    int // of a step: in the plans
	level level
	back  int // of leaveBatch, leavePatch: where it began
	undo  bool
}

// spot is where a patcher is: at an item, having made so many accesses of its step.
type spot struct {
	item  uint16
	stage uint8
}

// program is what a patcher does for ever: it enables any of the sites, or disables
// any.
type program struct {
	plans  struct{ own, other []poke.Step } // about the view's site, and about another one
	items  []item
	starts []int // of the updates
}

// piece is a step of an update, or a border of what is repeated.
type piece struct {
	kind  kind
	level level
	step  poke.Step
}

// newProgram compiles the updates: to enable, to disable while others stay enabled, and
// to disable the last.
func newProgram(s *explore.Setup, code *cpus.Code, patches []poke.Patch) (*program, error) {
	p := &program{items: []item{{kind: atRest}, {kind: atChoice}}}
	shape := poke.Shape{Traits: code.Traits, Len: code.Len}
	life := poke.Life{Patches: 1, Settles: s.Protocol.Settles(poke.Shape{Traits: code.Traits, Len: code.Len, Patches: 1}),
		Fenced: code.Traits.StoresBuffered}
	var around [2][]poke.Step
	for _, st := range life.Toggle(nil, nil) {
		if st.Undo {
			around[1] = append(around[1], st)
		} else {
			around[0] = append(around[0], st)
		}
	}
	enable, err := compile(s, shape, patches)
	if err != nil {
		return nil, err
	}
	attach := 1
	if life.Fenced {
		attach = 2
	}
	p.add(slices.Concat(steps(around[0][:attach]), enable, steps(around[0][attach:]), []piece{{kind: finish}}), false)
	shape.Detach = true
	disable, err := compile(s, shape, patches)
	if err != nil {
		return nil, err
	}
	for i := range disable {
		disable[i].step = poke.Backwards([]poke.Step{disable[i].step})[0]
	}
	release := around[1]
	keeps := slices.DeleteFunc(slices.Clone(release), func(st poke.Step) bool { return st.Op == poke.Release })
	if !shape.Frees() {
		release = keeps
	}
	p.addDisable(disable, steps(keeps), steps(release))
	end := poke.Step{Op: poke.Raise} // so that no step is the last
	p.plans.own, p.plans.other = append(p.plans.own, end), append(p.plans.other, end)
	return p, nil
}

// steps are steps about all sites of an update.
func steps(list []poke.Step) (out []piece) {
	for _, st := range list {
		out = append(out, piece{step: st})
	}
	return out
}

// addDisable appends the update that disables: a grace period and what goes with the
// last tracer are only for the last. A plan whose other steps say so too is not told
// apart here: it waits when it need not.
func (p *program) addDisable(plan, keeps, release []piece) {
	grace := len(plan)
	for grace > 0 && plan[grace-1].kind == atStep && plan[grace-1].step.Op == poke.GracePeriod {
		grace--
	}
	end := []piece{{kind: finish}}
	tail := slices.Concat(keeps, end)
	if grace < len(plan) || len(release) > len(keeps) {
		tail = slices.Concat([]piece{{kind: ifLast}}, plan[grace:], release, end, keeps, end)
	}
	p.add(slices.Concat(plan[:grace], tail), true)
}

// add appends an update.
func (p *program) add(pieces []piece, undo bool) {
	p.starts = append(p.starts, len(p.items))
	var open []int
	for _, x := range pieces {
		it := item{kind: x.kind, level: x.level, at: -1, undo: undo}
		switch x.kind {
		case enterBatch, enterPatch:
			open = append(open, len(p.items))
		case leaveBatch, leavePatch:
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
		p.items = append(p.items, it)
	}
	p.items = append(p.items, item{kind: finish, at: -1, undo: undo})
}

// ShapeError is a plan or a path that no view can tell.
type ShapeError struct{ Reason string }

func (e *ShapeError) Error() string { return e.Reason }

// tellable refuses steps that are about other patchers.
func tellable(plan []poke.Step) error {
	for _, st := range plan {
		switch {
		case st.Op == poke.Map, st.Op == poke.Raise, st.Op == poke.Expect:
			return &ShapeError{st.Name() + ": it is about other patchers, and in a view there is one"}
		}
	}
	return nil
}

// fenced refuses tables that wait in a store buffer while anything else is done: no view
// tells that they do. Where a step that pushes them out comes next, it makes no difference
// whether they wait until then.
//
// The ops of a tracer is fenced when it is attached (poke.Life), and nobody attaches
// another one before its release is over: that is to the same place.
func fenced(plan []poke.Step, t isa.Traits) error {
	for i, st := range plan {
		if !t.StoresBuffered || st.Op != poke.Publish && st.Op != poke.Unpublish {
			continue
		}
		if i+1 < len(plan) {
			switch plan[i+1].Op {
			case poke.Fence, poke.WaitHandlers, poke.Clear, poke.GracePeriod, poke.SynchronizeRCU, poke.Unlock:
				continue
			}
		}
		return &ShapeError{st.Name() + " without a fence behind it: no view tells that it waits in a store buffer"}
	}
	return nil
}

// compile is one update as pieces: its steps are about site 0, and what is repeated
// is marked.
func compile(s *explore.Setup, shape poke.Shape, patches []poke.Patch) ([]piece, error) {
	n := 3
	if s.Protocol.Batching == poke.Single {
		n = 1
	}
	shape.Patches = n
	shape.Entry = func(int) (int, bool) {
		bp := shape.Traits.BreakpointLen
		return int(patches[0].Len), patches[0].New.Slice(0, bp) == s.Arch.Breakpoint()
	}
	if err := s.Protocol.Compile(shape, func(func(poke.Range) bool) {}, func(poke.Step) {}); err != nil {
		return nil, err
	}
	var plan []poke.Step
	var from, to int
	s.Protocol.Unfold(shape, func(yield func(poke.Range) bool) {
		from = len(plan)
		yield(poke.Range{From: 0, To: n})
		to = len(plan)
	}, s.Mutation.Through(func(st poke.Step) { plan = append(plan, st) }))
	if err := cmp.Or(tellable(plan), fenced(plan, shape.Traits)); err != nil {
		return nil, err
	}
	var pieces []piece
	for _, st := range plan[:from] {
		pieces = append(pieces, piece{step: aboutFirst(st)})
	}
	pieces = append(pieces, piece{kind: enterBatch})
	batch, err := fold(plan[from:to], int32(n))
	if err != nil {
		return nil, err
	}
	pieces = append(append(pieces, batch...), piece{kind: leaveBatch})
	for _, st := range plan[to:] {
		pieces = append(pieces, piece{step: aboutFirst(st)})
	}
	return pieces, nil
}

func aboutFirst(st poke.Step) poke.Step {
	if st.To > st.From {
		st.From, st.To = 0, 1
	}
	return st
}

// fold finds the loops over a batch's n patches in what they unroll to.
func fold(plan []poke.Step, n int32) (out []piece, err error) {
	if n == 1 {
		for _, st := range plan {
			out = append(out, piece{step: st, level: ofBatch})
		}
		return out, nil
	}
	single := func(i int) bool { return plan[i].To == plan[i].From+1 }
	for i := 0; i < len(plan); {
		first := i
		for first < len(plan) && !single(first) {
			first++
		}
		begin, length := -1, 0
		if first < len(plan) {
			begin, length = unrolled(plan, i, first, n)
			if begin < 0 {
				return nil, &ShapeError{fmt.Sprintf("%s: the plan of three sites is not that of one, repeated", plan[first])}
			}
			first = begin
		}
		for ; i < first; i++ {
			out = append(out, piece{step: aboutFirst(plan[i]), level: ofBatch})
		}
		if begin < 0 {
			break
		}
		out = append(out, piece{kind: enterPatch})
		for _, st := range plan[begin : begin+length] {
			out = append(out, piece{step: aboutFirst(st), level: ofPatch})
		}
		out = append(out, piece{kind: leavePatch})
		i = begin + length*int(n)
	}
	return out, nil
}

// unrolled finds the loop whose first step about one patch is at first: it begins at
// lo or later. -1 where there is none.
func unrolled(plan []poke.Step, lo, first int, n int32) (begin, length int) {
	second := first + 1
	for second < len(plan) && (plan[second].Name() != plan[first].Name() || plan[second].From != plan[first].From+1) {
		second++
	}
	length = second - first
	for begin = first; begin >= lo && begin > first-length; begin-- {
		if repeats(plan[begin:], length, n) {
			return begin, length
		}
	}
	return -1, 0
}

// repeats tells whether a plan begins with the same steps n times, each time about the
// next patch.
func repeats(plan []poke.Step, length int, n int32) bool {
	if len(plan) < length*int(n) {
		return false
	}
	for i := range length {
		for k := range n {
			want := plan[i]
			if want.To > want.From {
				if want.From != 0 || want.To != 1 {
					return false
				}
				want.From, want.To = k, k+1
			}
			if plan[int(k)*length+i] != want {
				return false
			}
		}
	}
	return true
}
