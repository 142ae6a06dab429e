// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// obligations are what solvers must refute: that it does not begin in a view, that some
// step leads out of the views, and that in a view some property can break.
func (c *closure) obligations(f form) []Obligation {
	steps, broken := c.allSteps()
	w := newWriter(c, f, cubesOf(c.views))
	out := []Obligation{w.beginning()}
	for _, s := range steps {
		out = append(out, w.step(s.name, s.branches))
	}
	for _, p := range broken {
		out = append(out, w.never(cpus.Property(p.name), p.branches))
	}
	return out
}

// everyProperty is what a certificate speaks of: each property that a step of a CPU or of the
// patcher can break. Deadlock, lock-order and stuck updates and CPUs are about runs; no step breaks them.
var everyProperty = []cpus.Property{
	cpus.TornFetch, cpus.UnhandledBreakpoint, cpus.WrongInstruction, cpus.StaleAfterCompletion, cpus.HalfPair,
	cpus.TornLiteral, cpus.UseAfterFree, cpus.MismatchedOps, cpus.LostCall, cpus.Overflow, cpus.Conservation,
	cpus.BrokenSite, countOverwritten, cpus.FreedTable, cpus.WrongPage,
}

// named is branches of one step, or that break one property.
type named struct {
	name     string
	branches []branch
}

// allSteps are the steps of the whole machine, whether or not a view makes them: of CPUs
// in the states that views have, and of the patcher at the places that views have. A step
// may read any value.
func (c *closure) allSteps() (steps, broken []named) {
	var all []branch
	for known := -1; known != len(c.cpus.list); { // steps say of every CPU in which states it is: of all that have a number
		known, all = len(c.cpus.list), nil
		for _, d := range c.has(does).list(known) {
			all = append(all, c.stepsOfCPU(d, nil)...)
		}
		for _, p := range c.has(place).list(len(c.places.list)) {
			all = slices.Concat(all, c.stepsOfPatcher(p, nil), c.stepsOfOthers(p))
		}
		all = append(all, c.drains(nil)...)
		all = append(all, c.outOfReach(all)...)
		c.lookAround()
	}
	for _, p := range everyProperty {
		broken = append(broken, named{name: string(p)})
	}
	if c.several {
		broken = append(broken, named{name: string(batchLeft)})
	}
	note := func(list *[]named, name string, b branch) {
		i := slices.IndexFunc(*list, func(n named) bool { return n.name == name })
		if i < 0 {
			i = len(*list)
			*list = append(*list, named{name: name})
		}
		(*list)[i].branches = append((*list)[i].branches, b)
	}
	for _, b := range all {
		if b.broken != "" {
			b.then = nil
			note(&broken, string(b.broken), b)
		} else {
			note(&steps, b.name, b)
		}
	}
	return steps, broken
}

// outOfReach are steps that break a property that none of these branches breaks. Only CPUs in
// states that no view has make them: a busy CPU without requests comes to these states if it
// may read any value of sites and of the patcher.
func (c *closure) outOfReach(reached []branch) (out []branch) {
	has := map[cpus.Property]bool{}
	for _, b := range reached {
		has[b.broken] = true
	}
	copied := *c.machine // whose numbers are not the certificate's
	copied.cpus.list = []cpus.CPU{c.cpus.list[c.initial()[0][does]]}
	come := []number{0}
	for i := 0; i < len(come); i++ {
		for _, b := range copied.stepsOfCPU(come[i], nil) {
			if b.broken != "" && !has[b.broken] {
				b.when[0] = cond{own, []test{{does, only(c.cpu(copied.cpus.list[come[i]]))}}}
				out = append(out, b)
			}
			for _, u := range b.then {
				if u.attr == does && c.first.lets(&b) && !slices.Contains(come, u.to) {
					come = append(come, u.to)
				}
			}
		}
	}
	return out
}

// lets tells whether a view has what a step reads of the CPU, whatever it does.
func (v *view) lets(b *branch) bool {
	return !slices.ContainsFunc(b.when, func(c cond) bool {
		t := c.any[0]
		return attrs[t.attr].of == ofCPU && t.attr != does && !t.holds(v)
	})
}

// beginning is the obligation that all is in a view before anything has happened.
func (w *writer) beginning() Obligation {
	var idle values
	for _, v := range w.initial() {
		idle = idle.union(only(v[does]))
	}
	first := w.everyPair(func(c, s string) string {
		var all []string
		for _, a := range state() {
			in := only(w.first[a])
			if a == does {
				in = idle
			}
			all = append(all, w.is(a, term(a, "", c, s), in))
		}
		return conj(all)
	})
	return Obligation{Name: "begin", About: "before anything has happened all is as some view says", Fires: true,
		head: w.head, guard: fmt.Sprintf("(assert %s)\n", first),
		goal: fmt.Sprintf("(assert (not %s))\n", inView("", "c1", "s1"))}
}

// never is the obligation that no view lets a property be broken.
func (w *writer) never(p cpus.Property, branches []branch) Obligation {
	ways := spelling.Each(w.outcomes(branches), func(o outcome) string { return w.guardOf(&o) })
	about := "no view allows a step that breaks this: "
	if len(branches) == 0 {
		about = "no step, whatever it reads, breaks this: "
	}
	return Obligation{
		Name:  "never-" + slug(string(p)),
		About: about + string(p),
		Fires: true,
		head:  w.head,
		guard: fmt.Sprintf("(assert %s)\n", w.everyPair(func(c, s string) string { return inView("", c, s) })),
		goal:  fmt.Sprintf("(assert %s)\n", disj(ways)),
	}
}
