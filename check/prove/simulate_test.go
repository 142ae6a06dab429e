// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/poke"
)

// progress is where the explorer's patcher is: in which update, before which step, and
// with which of its sites it is through.
type progress struct {
	choice, at int // -1: between two updates
	done       int32
	stage      uint8
	tables     string // steps whose stores wait, but for those to sites
}

// simulation holds a machine of the explorer's against a certificate: every run of the
// one is a run of the other.
type simulation struct {
	*eyes
	states []whole
	where  []progress
	moves  [][]explore.Move
	met    map[view]bool // views that states of the certificate's machine have shown
	steps  int
}

// simulate goes through every state of a model and, beside it, through the states of the
// certificate's machine that look the same. It fails where a state of the model has
// none, where a step has none, or where a view is none of the certificate's. Steps of the
// certificate that are called as without says are left out.
func simulate(ctx context.Context, c *closure, m *explore.Model, limit int, without ...string) (*simulation, error) {
	s := &simulation{eyes: newEyes(newRules(c, len(m.Roles), len(m.Code.Sites)), m), met: map[view]bool{}}
	s.without = without
	err := explore.Walk(ctx, m, limit, func(is *explore.Moment) {
		s.states, s.moves = append(s.states, s.see(is)), append(s.moves, nil)
		s.where = append(s.where, s.progressOf(&is.Patchers[0]))
	}, func(mv explore.Move) { s.moves[mv.From] = append(s.moves[mv.From], mv) })
	if err != nil {
		return nil, err
	}
	return s, s.run()
}

func (s *simulation) progressOf(p *poke.Patcher) (at progress) {
	if at = (progress{choice: -1, at: -1}); !p.Between() {
		at.at, at.done, at.stage = p.Place()
		at.choice = slices.IndexFunc(p.Menu, func(c poke.Choice) bool { return c.From <= at.at && at.at < c.To })
	}
	for _, id := range p.Progress(nil).Buffered {
		if st := p.Plan[id.At]; st.Op != poke.Write {
			at.tables += spelled(st) + ";"
		}
	}
	return at
}

// spelled is a step without its patches.
func spelled(st poke.Step) string { return fmt.Sprint(st.Name(), st.Undo) }

// pair is a state of the explorer's and those of the certificate's machine that it may be.
type pair struct {
	state int
	set   string
}

// run follows every step of every state, from the first one on.
func (s *simulation) run() error {
	first := s.states[0]
	first.patcher[place] = s.places.index(spot{})
	queue, seen := []pair{{0, key([]whole{first})}}, map[pair]bool{}
	seen[queue[0]] = true
	if err := s.inside(&first); err != nil {
		return err
	}
	for len(queue) > 0 {
		from := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, mv := range s.moves[from.state] {
			s.steps++
			to := s.follow(sets(from.set), mv)
			if len(to) == 0 {
				return fmt.Errorf("state %d: %s: no step of the certificate does so: %s", mv.From, mv.What,
					s.difference(&s.states[mv.From], &s.states[mv.To]))
			}
			for i := range to {
				if err := s.inside(&to[i]); err != nil {
					return fmt.Errorf("behind %s: %w", mv.What, err)
				}
			}
			if next := (pair{mv.To, key(to)}); !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return nil
}

// inside tells whether all views of a state are the certificate's, and notes them.
func (s *simulation) inside(w *whole) error {
	if c, site, out := s.outside(w); out {
		return fmt.Errorf("cpu %d and site %d show what is no view: %s", c, site, s.spellView(w, c, site))
	}
	for c := range s.cpus {
		for site := range s.sites {
			s.met[s.viewOf(w, c, site)] = true
		}
	}
	return nil
}

func (s *simulation) spellView(w *whole, c, site int) (out string) {
	v := s.viewOf(w, c, site)
	for a := range numAttrs {
		out += fmt.Sprintf("%s %s, ", a, s.value(a, v[a]))
	}
	return out
}

// key makes a string of states, and sets the states again.
func key(list []whole) string {
	slices.SortFunc(list, func(x, y whole) int { return bytes.Compare(raw(&x), raw(&y)) })
	var out []byte
	for i := range list {
		out = append(out, raw(&list[i])...)
	}
	return string(out)
}

func raw(w *whole) []byte { return (*[unsafe.Sizeof(*w)]byte)(unsafe.Pointer(w))[:] }

func sets(s string) (list []whole) {
	for n := int(unsafe.Sizeof(whole{})); len(s) > 0; s = s[n:] {
		var w whole
		copy(raw(&w), s)
		list = append(list, w)
	}
	return list
}

// follow is where a step of the explorer's can lead in the certificate's machine.
func (s *simulation) follow(from []whole, mv explore.Move) []whole {
	is, will := &s.states[mv.From], &s.states[mv.To]
	found := map[whole]bool{}
	if !mv.Patcher {
		for i := range from {
			if s.looks(&from[i], will) {
				found[s.standing(from[i], will)] = true
			}
			for _, w := range s.cpuMoves(&from[i], mv.Who) {
				if s.looks(&w, will) {
					found[s.standing(w, will)] = true
				}
			}
		}
		return slices.Collect(maps.Keys(found))
	}
	visited := map[whole]bool{}
	for len(from) > 0 {
		var next []whole
		for i := range from {
			w := from[i]
			if visited[w] {
				continue
			}
			visited[w] = true
			if s.looks(&w, will) && s.fits(&w, mv.To) {
				found[w] = true
			}
			for _, w := range s.patcherMoves(&w) {
				if s.between(&w, is, will) && s.updates(&w, mv) {
					next = append(next, w)
				}
			}
		}
		from = next
	}
	return slices.Collect(maps.Keys(found))
}

// standing forgets which site a CPU was at that is at none.
func (s *simulation) standing(w whole, like *whole) whole {
	for c := range s.cpus {
		if !s.about(w.cpu[c][does]) {
			w.at[c] = like.at[c]
		}
	}
	return w
}

// looks tells whether a state looks like another one.
func (s *simulation) looks(w, like *whole) bool { return s.between(w, like, like) }

// between tells whether a state looks like one of two in everything.
func (s *simulation) between(w, a, b *whole) bool {
	for c := range s.cpus {
		if s.about(w.cpu[c][does]) && w.at[c] != a.at[c] && w.at[c] != b.at[c] {
			return false
		}
		for site := range s.sites {
			for _, x := range seen {
				if is := *w.place(x, c, site); is != *a.place(x, c, site) && is != *b.place(x, c, site) {
					return false
				}
			}
		}
	}
	return true
}

// updates tells whether a state is in no other update than the two that a step of the
// explorer's is between.
func (s *simulation) updates(w *whole, mv explore.Move) bool {
	var in uint64
	for site := range s.sites {
		if w.site[site][role] != out {
			in |= 1 << site
		}
	}
	undo := s.program.items[s.places.list[w.patcher[place]].item].undo
	for _, state := range []int{mv.From, mv.To} {
		if k := s.where[state].choice; k < 0 && in == 0 || k >= 0 && in == s.sitesOf(k) && undo == s.menu(k).Undo {
			return true
		}
	}
	return false
}

func (s *simulation) menu(k int) *poke.Choice { return &s.model.Programs[0].Menu[k] }

// sitesOf are the sites of an update.
func (s *simulation) sitesOf(k int) (sites uint64) {
	for i, p := range s.model.Programs[0].Patches {
		if s.menu(k).Sites>>i&1 != 0 {
			sites |= 1 << p.Site
		}
	}
	return sites
}

// fits tells whether the certificate's patcher is where the explorer's is. Where a store
// to a table waits, it may still be before that.
func (s *simulation) fits(w *whole, state int) bool {
	at := s.where[state]
	place := s.places.list[w.patcher[place]]
	it := s.program.items[place.item]
	if it.kind != atStep {
		return at.choice < 0 && (it.kind == atRest || it.kind == atChoice)
	}
	own := s.program.plans.own[it.at]
	if at.tables != "" && bytes.Contains([]byte(at.tables), []byte(spelled(own)+";")) {
		return true
	}
	if at.choice < 0 {
		return false
	}
	st := s.model.Programs[0].Plan[at.at]
	if spelled(own) != spelled(st) {
		return false
	}
	switch st.Op {
	case poke.Verify, poke.Write, poke.Settle:
	default:
		return place.stage == at.stage
	}
	covered := map[int]bool{}
	for i := st.From; i < st.To; i++ {
		site := int(s.model.Programs[0].Patches[i].Site)
		covered[site] = true
		want := number(0)
		switch {
		case i < st.From+at.done:
			want = siteDone
		case i == st.From+at.done:
			want = number(at.stage)
		}
		if w.site[site][done] != want {
			return false
		}
	}
	for site := range s.sites {
		if it.level.covers().has(w.site[site][role]) != covered[site] {
			return false
		}
	}
	return true
}

// difference says what a step changes.
func (s *simulation) difference(a, b *whole) (out string) {
	for c := range s.cpus {
		for site := range s.sites {
			for _, x := range seen {
				if was, is := *a.place(x, c, site), *b.place(x, c, site); was != is {
					out += fmt.Sprintf("cpu %d, site %d: %s from %s to %s; ", c, site, x, s.value(x, was), s.value(x, is))
				}
			}
		}
	}
	return out
}
