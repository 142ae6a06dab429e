// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/textpoke/textpoke/cpus"
)

// Liveness asks, of every state that the model can reach, whether there is a way on to
// where each patcher's update is over, and to where every CPU stands between two calls
// with no task preempted in the middle of one. A state without such a way is
// cpus.StuckUpdate or cpus.StuckCPU, and the trace leads to the first that there is.
//
// It says that a way on exists, not that it is taken. A machine whose steps are fair takes it,
// unless a CPU fetches old text for ever. The answer is about the machine at hand.
//
// It goes forward through all states, which no reduction but that by equal CPUs leaves
// out, and keeps which leads to which; then backward from where all is well. Deadlocks
// are what it looks for and locks in the wrong order do no harm by themselves, so these two
// do not stop it; any other violation does. Limits are those of Options, on states, time
// and memory: a pass that is cut short is Incomplete.
func Liveness(ctx context.Context, m *Model, o Options) (*Result, error) {
	l := newLiveness(m, o)
	cut, err := l.forward(ctx)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Verdict: Safe, Depth: l.depth, States: uint64(len(l.parent)), Transitions: uint64(len(l.to)),
		Memory: l.memory(), Collision: collision(uint64(len(l.parent))), Coverage: m.coverage(l.e.w.reached),
	}
	switch {
	case l.broken:
		r.Verdict = Unsafe
		r.Trace, err = l.trace()
	case cut != "":
		r.Verdict, r.Cut = Incomplete, cut
	default:
		if state, found := l.stuck(); found {
			r.Verdict = Unsafe
			r.Trace, err = l.witness(state)
		}
	}
	if r.Trace != nil {
		r.Trace.Shortest = true
		r.Violation, r.Depth = &r.Trace.Violation, len(r.Trace.Steps)
	}
	r.Elapsed = time.Since(l.start)
	return r, err
}

// alsoLives asks for liveness, too, where a search has found that nothing breaks.
func alsoLives(ctx context.Context, m *Model, o Options, safe *Result) (*Result, error) {
	r, err := Liveness(ctx, m, o)
	switch {
	case err != nil:
		return nil, err
	case r.Verdict == Safe:
		safe.Elapsed += r.Elapsed
		return safe, nil
	}
	r.Elapsed += safe.Elapsed
	return r, nil
}

// goals are what a state has reached: one bit for each patcher whose update is over, and
// one for all CPUs at rest.
type goals uint8

const atRest goals = 1 << MaxPatchers

// liveness is a pass under way.
type liveness struct {
	tracer
	o      Options
	start  time.Time
	at     *world
	number numbers
	first  []uint32 // by state: where its successors begin in to
	to     []uint32
	well   []goals  // by state: the goals that can be reached from it
	places []uint16 // by state: how far all programs are together
	broken bool     // last is a violation of another kind
}

func newLiveness(m *Model, o Options) *liveness {
	e := newExpander(m, Reductions{Symmetry: true})
	return &liveness{tracer: tracer{m: m, e: e}, o: o, start: time.Now(), at: newWorld(m), number: numbersFrom(e)}
}

// numbers are those of states, by fingerprint, in the order in which they are found.
type numbers map[uint64]uint32

// numbersFrom are those from the initial state on.
func numbersFrom(e *expander) numbers { return numbers{fingerprint(e.initial()): 0} }

// of is a state's number, which is the next one where the state is a fresh one.
func (n numbers) of(words []uint64) (number uint32, fresh bool) {
	fp := fingerprint(words)
	number, seen := n[fp]
	if !seen {
		number = uint32(len(n))
		n[fp] = number
	}
	return number, !seen
}

// memory is about what the pass takes: a state's number with the map's room, its
// parent, its goals and place, where it begins, and its words in the queue; a step both ways.
func (l *liveness) memory() uint64 {
	return uint64(len(l.parent))*(40+4+2+1+2+4+8*uint64(l.m.layout.words)) + 8*uint64(len(l.to))
}

// forward makes the graph; cut says why not all of it.
func (l *liveness) forward(ctx context.Context) (cut string, err error) {
	err = l.levels(ctx, func(words []uint64) bool {
		if cut = l.o.over(uint64(len(l.parent)), l.memory(), time.Since(l.start)); cut == "" {
			l.state(words)
		}
		return cut == ""
	}, l.step)
	l.first = append(l.first, uint32(len(l.to)))
	if cut == "" && l.e.full {
		cut = l.m.noRoom()
	}
	return cut, err
}

// state notes what a state has reached.
func (l *liveness) state(words []uint64) {
	l.at.unpack(words)
	l.well = append(l.well, l.at.goals())
	place := 0
	for i := range l.m.Programs {
		if p := &l.at.patcher[i]; !p.Endless() || !p.Between() {
			place += p.At
		}
	}
	l.places = append(l.places, uint16(place))
	l.first = append(l.first, uint32(len(l.to)))
}

// step notes where a way on from a state leads to.
func (l *liveness) step(here link, found *cpus.Violation) (fresh, on bool) {
	switch {
	case found == nil || found.Property == cpus.LockOrder:
	case found.Property == cpus.Deadlock:
		if l.e.w.waits { // no step at all
			return false, true
		}
	default:
		l.last, l.broken = here, true
		return false, false
	}
	number, fresh := l.number.of(l.e.next)
	l.to = append(l.to, number)
	return fresh, true
}

// goals are what a world has reached.
func (w *world) goals() (g goals) {
	for i := range w.m.Programs {
		if w.sat[i] != sitting {
			g |= 1 << i
		}
	}
	for i := range w.m.Roles {
		if !w.cpu[i].BetweenCalls() || w.parked[i].There() {
			return g
		}
	}
	return g | atRest
}

// stuck goes backward from the states that have reached a goal, goal by goal, and finds
// a state that has no way to one: an update's before the CPUs'. Of several it takes the first
// one in which programs have got farthest: that shows best for what they wait.
func (l *liveness) stuck() (state uint32, found bool) {
	from, begin := l.reverse()
	goals := []goals{atRest}
	for i := range l.m.Programs {
		goals = slices.Insert(goals, i, 1<<i)
	}
	var queue []uint32
	for _, g := range goals {
		for s, w := range l.well {
			if w&g != 0 {
				queue = append(queue, uint32(s))
			}
		}
		for ; len(queue) > 0; queue = queue[1:] {
			for _, s := range from[begin[queue[0]]:begin[queue[0]+1]] {
				if l.well[s]&g == 0 {
					l.well[s] |= g
					queue = append(queue, s)
				}
			}
		}
		for s, w := range l.well {
			if w&g == 0 && (!found || l.places[s] > l.places[state]) {
				state, found = uint32(s), true
			}
		}
		if found {
			break
		}
	}
	return state, found
}

// reverse is by state those that lead to it: from begin of the state to that of the next.
func (l *liveness) reverse() (from, begin []uint32) {
	states := len(l.well)
	from, begin = make([]uint32, len(l.to)), make([]uint32, states+1)
	for _, s := range l.to {
		begin[s+1]++
	}
	for s := range states {
		begin[s+1] += begin[s]
	}
	room := slices.Clone(begin)
	for s := range states {
		for _, t := range l.to[l.first[s]:l.first[s+1]] {
			from[room[t]] = uint32(s)
			room[t]++
		}
	}
	return from, begin
}

// whereabouts says where a patcher is, for people.
func (w *world) whereabouts(i int) string {
	if p := &w.patcher[i]; !p.Between() {
		return fmt.Sprintf("is at %s", p.Plan[p.At])
	}
	return "is between two updates"
}

// witness is the way into a state that has no way to some goal.
func (l *liveness) witness(state uint32) (*Trace, error) {
	lost := l.well[state]
	t, w, err := l.way(l.wayTo(state))
	if err != nil {
		return nil, err
	}
	v := &t.Violation
	for i := range l.m.Programs {
		if lost>>i&1 == 0 {
			*v = cpus.Violation{Property: cpus.StuckUpdate, CPU: l.m.homes[i], Why: fmt.Sprintf(
				"patcher %d %s, and whatever follows, no update of its ever ends", i, w.whereabouts(i))}
			return t, nil
		}
	}
	v.Property = cpus.StuckCPU
	for i := range l.m.Roles {
		switch c := &w.cpu[i]; {
		case !c.BetweenCalls():
			v.CPU, v.Why = i, fmt.Sprintf("it is %s, and whatever follows, it never comes back between two calls", w.cpuState(i))
			return t, nil
		case w.parked[i].There():
			v.CPU, v.Why = i, "the task that was preempted there never ends its call"
			return t, nil
		}
	}
	v.Why = "it stands between two calls, and from here on never again when all the others do"
	return t, nil
}
