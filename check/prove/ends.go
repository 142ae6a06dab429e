// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// That updates end follows from the views, too. A patcher that does not go on waits for all CPUs, for
// all sites, or for one site's stores. While it waits, a view changes by the steps of its own CPU and
// by its site's alone, and two things are asked of every wait:
//
//   - each view has a way on, by these steps, to where nothing is waited for;
//   - no step of the CPU leads back from there.
//
// Then some way leads on from every state of every machine: its CPUs go theirs, one after the other.
// Loops end because there are finitely many sites, and each turn takes one. It says that a way on
// exists, as `check --liveness` does, and not that it is taken: CPUs whose steps are fair take it.
// CPUs come online, go offline and take NMIs finitely often. Tasks are preempted finitely often, and some
// busy CPU takes up each that was.

// stuck is the first wait for which that is not so: the step, and the CPU's state there; "" for none.
func (c *closure) stuck() string {
	at := map[number][]int{}
	for i, v := range c.views {
		if c.program.items[c.places.list[v[place]].item].kind == atStep {
			at[v[place]] = append(at[v[place]], i)
		}
	}
	for p := range number(len(c.places.list)) {
		if i := c.stuckAt(p, at[p]); i >= 0 {
			v := c.views[i]
			return c.spell(c.places.list[p]) + ", where a CPU " + c.cpus.list[v[does]].Phase.Does()
		}
	}
	return ""
}

// stuckAt is a view in which the patcher waits for ever at a place; -1 for none. A CPU that has interrupts
// masked comes to where it stands between two calls, and there it has them on again.
func (c *closure) stuckAt(p number, views []int) int {
	next := map[int]leads{}
	for _, i := range views {
		next[i] = c.leads(i)
	}
	for _, all := range c.awaited(p, views) {
		free := func(i int) bool {
			waits := func(w cond) bool { return !anyHolds(w.any, &c.views[i]) }
			return !slices.ContainsFunc(all, waits) || c.cpus.list[c.views[i][does]].Over(c.code)
		}
		unmasks := func(i int) bool {
			ph := c.cpus.list[c.views[i][does]].Phase
			return free(i) || !c.about(c.views[i][does]) || ph >= cpus.Interrupted && ph <= cpus.Answering
		}
		for _, i := range views {
			if free(i) && slices.ContainsFunc(next[i].returns, func(to int) bool { return !free(to) }) {
				return i
			}
		}
		if i := max(noWay(views, next, free, leads.any), noWay(views, next, unmasks, leads.masked)); i >= 0 {
			return i
		}
	}
	return -1
}

// noWay is one of some views from which no steps lead to where something is so; -1 for none.
func noWay(views []int, next map[int]leads, is func(int) bool, to func(leads, map[int]bool) bool) int {
	free := map[int]bool{}
	for _, i := range views {
		free[i] = is(i)
	}
	for more := true; more; {
		more = false
		for _, i := range views {
			if !free[i] && to(next[i], free) {
				free[i], more = true, true
			}
		}
	}
	if n := slices.IndexFunc(views, func(i int) bool { return !free[i] }); n >= 0 {
		return views[n]
	}
	return -1
}

// awaited is what a patcher that leaves a place for the next step waits for, by what the step can amount to: all of that
// at once.
func (c *closure) awaited(p number, views []int) (list [][]cond) {
	if len(views) == 0 {
		return nil
	}
	for _, b := range c.stepsOfPatcher(p, &c.views[views[0]]) {
		if b.broken == "" {
			list = append(list, slices.DeleteFunc(slices.Clone(b.when), func(w cond) bool {
				return w.who != every && w.any[0].attr != reference
			}))
		}
	}
	return list
}

// leads are the views that one step leads to from a view while the patcher stays at its place.
type leads struct {
	free    []int // the view can make any of these steps
	looks   []int // likewise, but by taking interrupts, which a CPU may have masked
	bound   []int // other CPUs' steps decide between these
	returns []int // steps of the CPU, which must not lead back to waiting
}

// masked tells whether a way leads on to one of some views without taking an interrupt, any whether one
// does at all.
func (l leads) masked(good map[int]bool) bool {
	return slices.ContainsFunc(l.free, func(i int) bool { return good[i] }) ||
		len(l.bound) > 0 && !slices.ContainsFunc(l.bound, func(i int) bool { return !good[i] })
}

func (l leads) any(good map[int]bool) bool {
	return l.masked(good) || slices.ContainsFunc(l.looks, func(i int) bool { return good[i] })
}

// leads makes the steps of a view's own CPU and site.
func (c *closure) leads(i int) (l leads) {
	v := c.views[i]
	is := &c.cpus.list[v[does]]
	to := func(b *branch) (int, bool) {
		if b.broken != "" || !c.may(&v, b, part{cpu: true, site: true}) {
			return 0, false
		}
		behind, ok := c.index[c.after(&v, b, part{cpu: true, site: true})]
		return behind, ok && c.views[behind][place] == v[place]
	}
	for _, b := range append(c.stepsOfPatcher(v[place], &v), c.drains(&v)...) {
		if behind, ok := to(&b); ok && b.onSite {
			l.free = append(l.free, behind)
		}
	}
	itself := c.stepsOfCPU(v[does], &v)
	for n, b := range slices.Concat(itself, c.foreign[v[does]]) {
		behind, ok := to(&b)
		switch {
		case !ok || b.rare:
			continue
		case n >= len(itself): // at another site
		case slices.ContainsFunc(b.when, func(w cond) bool { return w.who != own }):
			l.bound = append(l.bound, behind)
		case b.name == looksForInterrupts:
			l.looks = append(l.looks, behind)
		default:
			l.free = append(l.free, behind)
		}
		now := &c.cpus.list[c.views[behind][does]]
		if is.Phase != cpus.Down && (is.Offline(c.code) || !now.Offline(c.code)) {
			l.returns = append(l.returns, behind)
		}
	}
	return l
}
