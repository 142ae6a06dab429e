// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// ExamineSites makes every step of every state that the model can reach, up to a limit of
// states (0: none), and repeats each step in the model restricted to one site, for each site
// in turn (see Among). The restricted model must reach the same state: by the same step, or
// by steps that are about none of the sites that it changes.
//
// A step that violates a property must violate it in some restricted model too, and is
// followed no further. ExamineSites ends at the first step that cannot be repeated.
func ExamineSites(ctx context.Context, m *Model, limit uint64) (*Examination, error) {
	x := &siteExaminer{e: newExpander(m, Reductions{}), equal: newExpander(m, Reductions{Symmetry: true}),
		base: newWorld(m), canonical: make([]uint64, m.layout.words)}
	for _, site := range m.changed() {
		n, err := m.narrow([]int{site})
		if err != nil {
			return nil, err
		}
		x.followers = append(x.followers, newFollower(n))
	}
	level := x.e.initial()
	x.seen.insert(fingerprint(level), nil)
	for x.got.States = 1; len(level) > 0; {
		var next []uint64
		for words := range slices.Chunk(level, m.layout.words) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if next = x.state(words, next); len(x.got.Unlike) > 0 {
				return &x.got, nil
			}
		}
		if level = next; limit > 0 && x.got.States >= limit && len(level) > 0 {
			x.got.Cut = fmt.Sprintf("the limit of %d states is reached", limit)
			break
		}
	}
	if x.e.full {
		x.got.Cut = m.noRoom()
	}
	return &x.got, nil
}

// changed are the sites that patchers change.
func (m *Model) changed() (sites []int) {
	for _, p := range m.Programs {
		for i := range p.Patches {
			if site := int(p.Patches[i].Site); !slices.Contains(sites, site) {
				sites = append(sites, site)
			}
		}
	}
	slices.Sort(sites)
	return sites
}

// siteExaminer is an examination under way.
type siteExaminer struct {
	e, equal  *expander // the second does not tell CPUs apart
	base      *world
	seen      prints
	got       Examination
	followers []*follower
	canonical []uint64
}

// state looks at every step from a state, and appends the states that are new.
func (x *siteExaminer) state(words, next []uint64) []uint64 {
	x.e.expand(words, func(found *cpus.Violation) bool {
		x.got.Steps++
		a, answers, why := x.e.action, x.e.answers(), ""
		for _, f := range x.followers {
			if found != nil {
				if why = f.breaks(words, a, answers, found.Property); why == "" {
					break
				}
				continue
			}
			if why = f.follows(words, x.e.next, a, answers); why != "" {
				break
			}
		}
		if why != "" && len(x.got.Unlike) < maxStrays {
			x.base.unpack(words)
			s := Stray{Footprint{Who: int(a.who), What: x.base.does(a), Patcher: a.ofPatcher()}, why}
			if !slices.Contains(x.got.Unlike, s) {
				x.got.Unlike = append(x.got.Unlike, s)
			}
		}
		copy(x.canonical, x.e.next)
		x.equal.canonical(x.canonical)
		if found == nil && x.seen.insert(fingerprint(x.canonical), nil) {
			x.got.States++
			next = append(next, x.canonical...)
		}
		return true
	})
	return next
}

// follower is a machine of a site among others that does what a larger one does.
type follower struct {
	*narrowing
	from, w    *world
	begin, end []uint64
	rooms      [maxFollowing]struct { // by depth
		words  []uint64
		list   []following
		script cpus.Script
	}
}

// maxFollowing is how many steps follow one.
const maxFollowing = 4

func newFollower(n *narrowing) *follower {
	words := n.m.layout.words
	f := &follower{narrowing: n, from: newWorld(n.wide), w: newWorld(n.m), begin: make([]uint64, words),
		end: make([]uint64, words)}
	for i := range f.rooms {
		f.rooms[i].words = make([]uint64, words)
	}
	return f
}

// view is what a state of the larger machine is to the site.
func (f *follower) view(wide, words []uint64) {
	f.from.unpack(wide)
	f.project(f.from, f.w)
	f.w.pack(words)
}

// follows says what keeps the machine from coming from where the one state is to it to
// where the other is; "" for nothing.
func (f *follower) follows(words, next []uint64, a action, answers []uint8) string {
	f.view(next, f.end)
	f.view(words, f.begin)
	if slices.Equal(f.begin, f.end) {
		return ""
	}
	there := func(words []uint64) bool { return f.w.found == nil && slices.Equal(words, f.end) }
	if f.after(a, answers, there) {
		return ""
	}
	return fmt.Sprintf("site %d among others cannot follow", f.site())
}

// breaks says whether the machine does not break what a step of the larger one does.
func (f *follower) breaks(words []uint64, a action, answers []uint8, p cpus.Property) string {
	f.view(words, f.begin)
	broken := func([]uint64) bool { return f.w.found != nil && f.w.found.Property == p }
	if f.after(a, answers, broken) {
		return ""
	}
	return fmt.Sprintf("%s takes more than one site", p)
}

// site is what the machine is about.
func (f *follower) site() int32 { return f.m.Programs[0].Patches[0].Site }

// after tells whether some steps that may follow a step of the larger machine lead to
// where something is so: the fewest first.
func (f *follower) after(a action, answers []uint8, is func(words []uint64) bool) bool {
	for steps := 1; steps <= maxFollowing; steps++ {
		if f.search(f.begin, f.moves(a, answers), a, steps, is) {
			return true
		}
	}
	return false
}

// following is a step that may follow another one.
type following struct {
	action
	given  []uint8 // answers; nil: all there are
	remote bool    // a CPU's step that begins a call calls a site that is not changed
}

// moves is what may follow a step at once: the same, unless a CPU makes it for a site that is
// not the machine's own.
func (f *follower) moves(a action, answers []uint8) (list []following) {
	if a.kind == stepCPU {
		c := &f.from.cpu[a.who]
		site, about := f.wide.codec.Site(f.wide.codec.Pack(c))
		if !about || !slices.Contains(f.gone, site) || c.InInterrupt() {
			list = append(list, following{action: a, given: append([]uint8{}, answers...)})
		}
	}
	return list
}

// search tries the first of so many steps from a state, and then the others.
func (f *follower) search(from []uint64, list []following, a action, steps int, is func([]uint64) bool) bool {
	w, room := f.w, &f.rooms[steps-1]
	w.unpack(from)
	list = f.others(list, a)
	for _, m := range list {
		room.script.Restart(m.given)
		for more := true; more; more = m.given == nil && !m.remote && room.script.Next() {
			w.unpack(from)
			w.waits, w.full = false, false
			f.make(m, &room.script)
			if w.found == nil && (w.waits || w.full) {
				continue
			}
			w.pack(room.words)
			if steps == 1 && is(room.words) {
				return true
			}
			if steps > 1 && w.found == nil && !slices.Equal(room.words, from) && f.search(room.words, nil, a, steps-1, is) {
				return true
			}
		}
	}
	return false
}

// make makes a step.
func (f *follower) make(m following, s *cpus.Script) {
	if m.remote {
		f.w.perform(m.action, callsSite(f.gone[0]))
		return
	}
	f.w.perform(m.action, s)
}

// callsSite is a Chooser by which a CPU calls that site.
type callsSite int

// Choose implements cpus.Chooser.
func (a callsSite) Choose(what cpus.Choice, _ int) int {
	if what == cpus.ChooseSite {
		return int(a)
	}
	return 0
}

// others appends the steps that may follow a step and are about no site: the CPU looks for
// interrupts, fetches afresh, or calls a site that is not changed. After a patcher's step
// come the patcher's next steps, and such steps of any CPU.
func (f *follower) others(list []following, a action) []following {
	for _, b := range f.w.enabled(nil) {
		switch {
		case a.ofPatcher() && b.ofPatcher():
			list = append(list, following{action: b})
		case b.ofPatcher(), !a.ofPatcher() && a.who != b.who:
		case b.kind != stepCPU:
			list = append(list, following{action: b})
		default:
			c := &f.w.cpu[b.who]
			looks := c.AtBorder() && !c.Polled() || c.Phase == cpus.Interrupted || c.Phase == cpus.Stopped
			if looks || c.Phase == cpus.Boundary {
				list = append(list, following{action: b, remote: true})
			}
		}
	}
	return list
}
