// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// Footprint is what a step reads and writes, in any of the states in which it did so.
type Footprint struct {
	Patcher             bool // or a CPU
	Who                 int
	What                string // in words
	Reads, Writes, Adds Things // Adds: counters that it adds to without looking
}

// Actor is who makes the step: "cpu 1".
func (f Footprint) Actor() string {
	if f.Patcher {
		return fmt.Sprintf("patcher %d", f.Who)
	}
	return fmt.Sprintf("cpu %d", f.Who)
}

// Stray is a step that is not what was said of it.
type Stray struct {
	Footprint
	Why string
}

func (s Stray) String() string { return fmt.Sprintf("%s, which %s: %s", s.Actor(), s.What, s.Why) }

// Examination is what was found about every step that a model can make.
type Examination struct {
	States, Steps uint64
	Cut           string      // why not every state was looked at; "" where all were
	Footprints    []Footprint // each once
	// Unnoted are steps that changed, or depended on, what their footprint does not have.
	Unnoted []Stray
	// Unlike are steps that are not the same step in the machine without some CPU that
	// does not make them, and steps of a CPU that the machine without it could tell.
	Unlike []Stray
}

// maxStrays is how many strays are kept of a kind; one is enough to refuse.
const maxStrays = 16

// Examine makes every step of every state that the model can reach, up to a limit of
// states (0: none), and looks at each three times.
//
// It is made with all accesses noted: its footprint. It is made once more with all
// exchanged that it did not read, for what that was in another state: it must do the
// same, and change nothing that it is not noted to write. And for every CPU that is no
// patcher's home and does not make the step, it is made in the machine without that CPU:
// it must lead to what the state after it is without that CPU. A step of a CPU must change
// nothing for the machine without that CPU.
//
// A step that violates a property must do so without some CPU too, and is followed no
// further.
func Examine(ctx context.Context, m *Model, limit uint64) (*Examination, error) {
	x, err := newExaminer(m)
	if err != nil {
		return nil, err
	}
	n := m.layout.words
	level := x.e.initial()
	x.seen.insert(fingerprint(level), nil)
	for x.got.States = 1; len(level) > 0; {
		var next []uint64
		for ; len(level) > 0; level = level[n:] {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			next = x.state(level[:n], next)
		}
		if level = next; limit > 0 && x.got.States >= limit && len(level) > 0 {
			x.got.Cut = fmt.Sprintf("the limit of %d states is reached", limit)
			break
		}
	}
	if x.e.full {
		x.got.Cut = m.noRoom()
	}
	slices.SortFunc(x.got.Footprints, compareFootprints)
	return &x.got, nil
}

func compareFootprints(a, b Footprint) int {
	return cmp.Or(cmp.Compare(a.Actor(), b.Actor()), cmp.Compare(a.What, b.What), cmp.Compare(a.Reads, b.Reads),
		cmp.Compare(a.Writes, b.Writes), cmp.Compare(a.Adds, b.Adds))
}

// examiner is an examination under way.
type examiner struct {
	m      *Model
	e      *expander // tells CPUs apart
	equal  *expander // does not
	seen   prints
	got    Examination
	prints map[Footprint]bool

	// The world as before the step, as behind it, as before it with much exchanged, and as it
	// was in an earlier state.
	base, noted, apart, past *world
	pasts                    []uint64
	smaller                  []*smaller
	canonical                []uint64
}

// earlier is how many earlier states are kept to exchange things with.
const earlier = 61

func newExaminer(m *Model) (*examiner, error) {
	x := &examiner{
		m: m, e: newExpander(m, Reductions{}), equal: newExpander(m, Reductions{Symmetry: true}),
		prints: map[Footprint]bool{}, noted: newWorld(m), base: newWorld(m), apart: newWorld(m), past: newWorld(m),
		canonical: make([]uint64, m.layout.words),
	}
	for cpu := range m.Roles {
		if m.houses(cpu) {
			continue
		}
		s, err := newSmaller(m, cpu)
		if err != nil {
			return nil, fmt.Errorf("without CPU %d: %w", cpu, err)
		}
		x.smaller = append(x.smaller, s)
	}
	return x, nil
}

// state looks at every step from a state, and appends the states that are new.
func (x *examiner) state(words, next []uint64) []uint64 {
	n := len(words)
	if at := int(x.got.Steps % earlier); len(x.pasts) < earlier*n {
		x.pasts = append(x.pasts, words...)
	} else { // now this one, now that one
		copy(x.pasts[at*n:], words)
	}
	x.e.expand(words, func(found *cpus.Violation) bool {
		x.got.Steps++
		a, answers := x.e.action, x.e.answers()
		f := x.footprint(words, a, answers)
		if found != nil {
			x.stray(&x.got.Unlike, f, x.breaks(words, a, answers, found.Property))
			return true
		}
		for _, s := range x.smaller {
			x.stray(&x.got.Unlike, f, s.look(x.base, words, x.e.next, a, answers))
		}
		copy(x.canonical, x.e.next)
		x.equal.canonical(x.canonical)
		if x.seen.insert(fingerprint(x.canonical), nil) {
			x.got.States++
			next = append(next, x.canonical...)
		}
		return true
	})
	return next
}

// breaks says whether a step that violates a property takes every CPU to do so.
func (x *examiner) breaks(words []uint64, a action, answers []uint8, p cpus.Property) string {
	for _, s := range x.smaller {
		x.base.unpack(words)
		if own, others := a.follows(s.out); others {
			x.base.without(s.out, s.w)
			if s.w.perform(own, cpus.Repeat(answers)); s.w.found != nil && s.w.found.Property == p {
				return ""
			}
		}
	}
	return fmt.Sprintf("%s takes all of these CPUs", p)
}

func (x *examiner) stray(list *[]Stray, f Footprint, why string) {
	if s := (Stray{f, why}); why != "" && len(*list) < maxStrays && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// footprint makes a step with its accesses noted, and holds it against the notes.
func (x *examiner) footprint(words []uint64, a action, answers []uint8) Footprint {
	x.base.unpack(words)
	f := Footprint{Who: int(a.who), What: x.base.does(a), Patcher: a.ofPatcher()}
	x.noted.unpack(words)
	x.noted.once(a, cpus.Repeat(answers))
	f.Reads, f.Writes, f.Adds = x.noted.reads, x.noted.writes, x.noted.adds
	if !x.prints[f] {
		x.prints[f] = true
		x.got.Footprints = append(x.got.Footprints, f)
	}
	x.stray(&x.got.Unnoted, f, x.unnoted(words, f, a, answers))
	return f
}

// once makes an action happen, and nothing of what follows it; its notes are all that there
// are.
func (w *world) once(a action, ch cpus.Chooser) {
	w.notes, w.found, w.event, w.waits = notes{}, nil, cpus.Nothing, false
	w.act(a, ch)
}

// unnoted says what a footprint misses.
func (x *examiner) unnoted(words []uint64, f Footprint, a action, answers []uint8) string {
	for t := range numThings {
		if !(f.Writes | f.Adds).Has(t) && !x.noted.same(x.base, t) {
			return fmt.Sprintf("it changes %s, which was not noted", t)
		}
	}
	n := len(words)
	x.past.unpack(x.pasts[int(x.got.Steps)%(len(x.pasts)/n)*n:][:n])
	x.apart.unpack(words)
	x.apart.disturb(f.Reads, x.past)
	var was [numThings]int
	f.Adds.Each(func(t Thing) { was[t] = x.apart.count(t) })
	ch := cpus.Repeat(answers)
	x.apart.once(a, ch)
	missed := ""
	if !ch.Fits() {
		missed = "it asks something else"
	}
	if a.kind == stepCPU && x.apart.breaks() != x.noted.breaks() {
		missed = "what it breaks"
	}
	f.Writes.Each(func(t Thing) {
		if !x.apart.same(x.noted, t) {
			missed = fmt.Sprintf("what it makes of %s", t)
		}
	})
	(f.Adds &^ f.Writes).Each(func(t Thing) {
		if x.apart.count(t)-was[t] != x.noted.count(t)-x.base.count(t) {
			missed = fmt.Sprintf("what it adds to %s", t)
		}
	})
	if missed != "" {
		missed += " depends on something that was not noted"
	}
	return missed
}

// breaks is what the last action broke, "" for nothing.
func (w *world) breaks() cpus.Property {
	if w.found == nil {
		return ""
	}
	return w.found.Property
}

// count is a thing that is a number.
func (w *world) count(t Thing) int {
	switch first, n := t.Kind(); first {
	case Answers:
		return int(w.left[n])
	case References:
		return int(*w.ref(0))
	case Arrived:
		return int(w.arrived)
	}
	return 0
}

// does says what an action is, in words that do not depend on who makes it.
func (w *world) does(a action) string {
	switch a.kind {
	case stepPatcher:
		p := &w.patcher[a.who]
		if p.Between() {
			return "chooses an update"
		}
		return fmt.Sprintf("is at step %d, %s", p.At+1, p.Plan[p.At])
	case begin:
		return "begins"
	case drain:
		return "has a store become visible"
	case park:
		return "is preempted"
	case unpark:
		return "goes on with a task that was preempted"
	case afresh, attend:
		return "has been at another site"
	}
	if c := &w.cpu[a.who]; !c.AtBorder() || c.Polled() {
		return c.Phase.Does()
	}
	return "looks for interrupts"
}

// smaller is the machine without one CPU.
type smaller struct {
	out         int
	w, then     *world
	want, got   []uint64
	possibility []action
}

func newSmaller(m *Model, cpu int) (*smaller, error) {
	o, err := m.withoutCPU(cpu)
	if err != nil {
		return nil, err
	}
	n := o.layout.words
	return &smaller{out: cpu, w: newWorld(o), then: newWorld(m), want: make([]uint64, n), got: make([]uint64, n)}, nil
}

// look makes a step that leads from a state to another where the CPU is left out, and
// says what is not the same then; "" for nothing.
func (s *smaller) look(from *world, words, next []uint64, a action, answers []uint8) string {
	s.then.unpack(next)
	s.then.without(s.out, s.w)
	s.w.pack(s.want)
	from.unpack(words)
	from.without(s.out, s.w)
	own, others := a.follows(s.out)
	if others {
		s.possibility = s.w.enabled(s.possibility[:0])
		ch := cpus.Repeat(answers)
		if !slices.Contains(s.possibility, own) {
			return fmt.Sprintf("not without cpu %d", s.out)
		}
		if s.w.perform(own, ch); s.w.found != nil || !ch.Fits() {
			return fmt.Sprintf("something else without cpu %d", s.out)
		}
	}
	if s.w.pack(s.got); !slices.Equal(s.got, s.want) {
		if !others {
			return fmt.Sprintf("the machine without cpu %d can tell", s.out)
		}
		return fmt.Sprintf("it leads elsewhere without cpu %d", s.out)
	}
	return ""
}
