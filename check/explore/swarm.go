// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/textpoke/textpoke/cpus"
)

// NotFound is the verdict of a swarm that has met no violation, which proves nothing.
const NotFound Verdict = "not found"

// SwarmStates is how many states a search of a swarm looks at unless something else is asked
// for.
const SwarmStates = 1_000_000

// Member is one search of a swarm (Holzmann, Joshi, Groce, "Swarm Verification Techniques",
// IEEE Transactions on Software Engineering 37(6), 2011): depth first, within bounds, in an
// order of its own. Of a space that is too large to be searched whole, many of them see more than
// one search that breaks off, each in little memory.
//
// It begins anew eight times, and whenever it has found something. Each time it prefers some
// CPUs and patchers to others, and takes the successors of a state in an order drawn by these
// preferences, so that some stand still for long while others go on. It goes down to a depth
// that is another one for each of four members, and to less than the shortest way that it has
// found. States that were seen are kept as fingerprints until it begins anew.
type Member struct {
	Number uint64 // among the searches of the swarm, from 0: it fixes every random choice
	States uint64 // that it looks at, at most
	Reduce Reductions
}

const (
	// beginnings is how often a search begins anew, most how often where it sees all within its
	// depth.
	beginnings, most = 8, 32
	// shallow is the depth of the least deep searches, which doubles thrice.
	shallow = 50
	// preferences: one CPU or patcher is up to 2^6 times as likely to come first as another.
	preferences = 6
)

// Roam searches as that member of a swarm. The result is the same every time, unless ctx ends.
func Roam(ctx context.Context, m *Model, by Member) (*Result, error) {
	start := time.Now()
	by.Reduce.Sites = false // a way tells sites apart
	r := &roamer{m: m, e: newExpander(m, by.Reduce), bound: shallow << (by.Number % 4)}
	result := &Result{Verdict: NotFound}
	for life := uint64(0); r.states < by.States && life < most; life++ {
		r.rng = rand.New(rand.NewPCG(by.Number, life))
		if err := r.live(ctx, min(by.States, r.states+max(by.States/beginnings, 1))); err != nil {
			return nil, err
		}
	}
	if r.way != nil {
		t := &tracer{m: m, e: r.e}
		trace, err := t.broken(r.way)
		if err != nil {
			return nil, err
		}
		if trace, err = m.shorten(trace); err != nil {
			return nil, err
		}
		result.Verdict, result.Trace, result.Violation = Unsafe, trace, &trace.Violation
		result.Depth = len(trace.Steps)
	} else {
		result.Depth = r.deepest
		result.Cut = "a swarm looks at some of the states"
	}
	result.States, result.Transitions = r.states, r.transitions
	result.Elapsed, result.Collision = time.Since(start), collision(by.States/beginnings)*beginnings
	return result, nil
}

// Best is what several searches of a swarm come to: the shortest way to a violation, the first
// of equal ones.
func Best(all []*Result) *Result {
	best := *slices.MinFunc(all, func(a, b *Result) int {
		if a.Verdict != b.Verdict {
			return cmp.Compare(b.Verdict, a.Verdict) // unsafe comes first
		}
		if a.Verdict == Unsafe {
			return cmp.Compare(a.Depth, b.Depth)
		}
		return cmp.Compare(b.Depth, a.Depth)
	})
	best.States, best.Transitions, best.Elapsed, best.Collision = 0, 0, 0, 0
	for _, r := range all {
		best.States += r.States
		best.Transitions += r.Transitions
		best.Elapsed += r.Elapsed
		best.Collision += r.Collision
	}
	return &best
}

// roamer is one search of a swarm under way.
type roamer struct {
	m     *Model
	e     *expander
	rng   *rand.Rand
	bound int      // no way is longer
	way   []uint16 // the shortest that was found: which successor each time, from the beginning

	deepest             int
	states, transitions uint64

	seen   prints
	weight [MaxCPUs + MaxPatchers]float64 // by who acts
	stack  []crossing
}

// crossing is a state on the way that the search is on, and where it can go on to.
type crossing struct {
	words []uint64 // of the successors that are left, one behind the other, the next one last
	which []uint16 // which each of them is
	taken uint16   // the one that the search is at
}

// live searches from the beginning until so many states were looked at in all, or nothing is
// left, or a shorter way is found.
func (r *roamer) live(ctx context.Context, limit uint64) error {
	r.seen = prints{}
	for i := range r.weight {
		r.weight[i] = float64(uint64(1) << r.rng.IntN(preferences+1))
	}
	first := r.e.initial()
	r.seen.insert(fingerprint(first), nil)
	r.stack = r.stack[:0]
	if r.cross(first) {
		return nil
	}
	n := r.m.layout.words
	for len(r.stack) > 0 {
		top := &r.stack[len(r.stack)-1]
		left := len(top.which)
		switch {
		case r.states >= limit:
			return nil
		case r.states&1023 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		case left == 0 || len(r.stack) >= r.bound:
			r.stack = r.stack[:len(r.stack)-1]
			continue
		}
		next := slices.Clone(top.words[(left-1)*n:])
		top.words, top.which, top.taken = top.words[:(left-1)*n], top.which[:left-1], top.which[left-1]
		if r.seen.insert(fingerprint(next), nil) && r.cross(next) {
			return nil
		}
	}
	return nil
}

// cross looks at a state, and puts its successors in an order. It tells whether one of them is
// a violation, on a way shorter than any before.
func (r *roamer) cross(words []uint64) (found bool) {
	r.states++
	r.deepest = max(r.deepest, len(r.stack))
	var successors []uint64
	var order []drawn
	which := uint16(0)
	r.e.expand(words, func(v *cpus.Violation) bool {
		if v != nil {
			r.way = r.way[:0]
			for i := range r.stack {
				r.way = append(r.way, r.stack[i].taken)
			}
			r.way = append(r.way, which)
			r.bound = len(r.stack)
			found = true
			return false
		}
		order = append(order, drawn{which, r.rng.ExpFloat64() / r.weight[r.e.action.actor()]})
		successors = append(successors, r.e.next...)
		which++
		return true
	})
	r.transitions += uint64(which)
	if found {
		return true
	}
	slices.SortFunc(order, func(a, b drawn) int { return cmp.Compare(b.late, a.late) })
	n := r.m.layout.words
	c := crossing{words: make([]uint64, 0, len(successors)), which: make([]uint16, 0, len(order))}
	for _, d := range order {
		c.words = append(c.words, successors[int(d.which)*n:(int(d.which)+1)*n]...)
		c.which = append(c.which, d.which)
	}
	r.stack = append(r.stack, c)
	return false
}

// drawn is a successor, and its place in the order.
type drawn struct {
	which uint16
	late  float64
}

// actor is who does it: a CPU, or behind all CPUs a patcher.
func (a action) actor() int {
	if a.byPatcher() {
		return MaxCPUs + int(a.who)
	}
	return int(a.who)
}

// move is an action with its answers.
type move struct {
	action
	answers []uint8
}

// shorten leaves out steps that a violation does not need: first many actions one behind the other,
// then fewer, for as long as the others can still happen and end in a violation (Zeller and
// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
// Engineering 28(2), 2002). The property may then be another one.
func (m *Model) shorten(t *Trace) (*Trace, error) {
	var way []move
	for _, s := range t.Steps {
		a, answers, err := parseAction(s.Do)
		if err != nil {
			return nil, err
		}
		way = append(way, move{a, answers})
	}
	for size := len(way) / 2; size > 0; {
		before := len(way)
		for from := 0; from+size <= len(way); {
			if left, breaks := m.breaks(slices.Delete(slices.Clone(way), from, from+size)); breaks {
				way = left
			} else {
				from += size
			}
		}
		if size = min(size, len(way)) / 2; size == 0 && len(way) < before {
			size = 1
		}
	}
	short := &Trace{}
	real, by := newWorld(m), &tracer{m: m, e: newExpander(m, Reductions{})}
	for _, mv := range way {
		short.Steps = append(short.Steps, by.follow(real, mv.action, mv.answers)...)
	}
	if real.found == nil {
		return nil, errNoTrace
	}
	short.Violation = *real.found
	return short, nil
}

// breaks tells whether actions can happen one after the other, and something breaks, and which
// of them it takes.
func (m *Model) breaks(way []move) (taken []move, breaks bool) {
	w := newWorld(m)
	for i, mv := range way {
		switch {
		case mv.kind == skip && w.Pending(int(mv.who), false): // there is something to look for
			return nil, false
		case !w.may(mv.action):
			return nil, false
		}
		ch := cpus.Repeat(mv.answers)
		w.full = false
		w.perform(mv.action, ch)
		switch {
		case !ch.Fits() || w.full:
			return nil, false
		case w.found != nil:
			return way[:i+1], true
		}
	}
	return nil, false
}
