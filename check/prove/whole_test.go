// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
)

// The size of the machines that are held against certificates.
const (
	mostCPUs  = 3
	mostSites = 2
)

// whole is a state of a small machine as obligations speak of it: the attributes of the
// patcher, of each site and CPU, and of each two of them.
type whole struct {
	patcher view
	site    [mostSites]view
	cpu     [mostCPUs]view
	windows [mostCPUs][mostSites]number
	at      [mostCPUs]number
}

// place is where an attribute of a CPU and a site stands.
func (w *whole) place(a attr, c, s int) *number {
	switch attrs[a].of {
	case ofSite:
		return &w.site[s][a]
	case ofCPU:
		return &w.cpu[c][a]
	case ofPair:
		return &w.windows[c][s]
	}
	return &w.patcher[a]
}

// rules are the steps of a certificate, made by a machine of so many CPUs and sites: a
// second reading of what the obligations say of them.
type rules struct {
	*closure
	cpus, sites int

	ofCPUs, ofPatcher map[number][]branch
	drained           []branch
	without           []string          // names of steps that are left out
	made              map[string]bool   // names of steps that were made
	moves             map[whole][]whole // of the patcher
}

func newRules(c *closure, cpus, sites int) *rules {
	return &rules{closure: c, cpus: cpus, sites: sites, ofCPUs: map[number][]branch{}, ofPatcher: map[number][]branch{},
		drained: unbroken(c.drains(nil)), moves: map[whole][]whole{}, made: map[string]bool{}}
}

func unbroken(list []branch) []branch {
	return slices.DeleteFunc(list, func(b branch) bool { return b.broken != "" })
}

// holds tells whether a test holds of a CPU and a site.
func (r *rules) holds(w *whole, t test, c, s int) bool { return t.in.has(*w.place(t.attr, c, s)) }

func (r *rules) anyHolds(w *whole, tests []test, c, s int) bool {
	return slices.ContainsFunc(tests, func(t test) bool { return r.holds(w, t, c, s) })
}

// may tells whether a step can be made by a CPU at a site.
func (r *rules) may(w *whole, b *branch, c0, s0 int) bool {
	if slices.Contains(r.without, b.name) {
		return false
	}
	for _, g := range b.when {
		met, all := 0, 1
		switch of := attrs[g.any[0].attr].of; {
		case g.who == own:
			if r.anyHolds(w, g.any, c0, s0) {
				met++
			}
		case of == ofCPU:
			for c := range r.cpus {
				if r.anyHolds(w, g.any, c, s0) {
					met++
				}
			}
			all = r.cpus
		default:
			for s := range r.sites {
				if r.anyHolds(w, g.any, c0, s) {
					met++
				}
			}
			all = r.sites
		}
		if met == 0 || g.who == every && met < all {
			return false
		}
	}
	return true
}

// after is the state behind a step.
func (r *rules) after(w *whole, b *branch, c0, s0 int) whole {
	to := *w
	r.made[b.name] = true
	for _, u := range b.then {
		for c := range r.cpus {
			for s := range r.sites {
				r.update(w, &to, u, c, s, c == c0, s == s0)
			}
		}
	}
	if b.onCPU && b.onSite {
		to.at[c0] = number(s0)
	}
	for s := range r.sites {
		to.site[s][chosen] = 0
	}
	return to
}

// update is one effect on one CPU and one site, which act or do not.
func (r *rules) update(w, to *whole, u update, c, s int, actsCPU, actsSite bool) {
	of := attrs[u.attr].of
	switch {
	case u.how == older:
		if int(w.at[c]) == s && (actsSite || u.ofSites == every) {
			to.cpu[c][does] = r.older(w.cpu[c][does])
		}
		return
	case (of == ofCPU || of == ofPair) && u.ofCPUs == own && !actsCPU,
		(of == ofSite || of == ofPair) && u.ofSites == own && !actsSite:
		return
	}
	for _, t := range u.provided {
		if !r.holds(w, t, c, s) {
			return
		}
	}
	is := u.to
	switch u.how {
	case push:
		is = r.pushed(w.windows[c][s], u.to)
	case fresh:
		is = r.onlyText(w.site[s][text])
	}
	*to.place(u.attr, c, s) = is
}

// cpuMoves are what a CPU's step can lead to.
func (r *rules) cpuMoves(w *whole, c int) (out []whole) {
	d := w.cpu[c][does]
	list, ok := r.ofCPUs[d]
	if !ok {
		list = unbroken(r.stepsOfCPU(d, nil))
		r.ofCPUs[d] = list
	}
	for s := range r.sites {
		if r.about(d) && int(w.at[c]) != s {
			continue
		}
		for i := range list {
			if r.may(w, &list[i], c, s) {
				out = append(out, r.after(w, &list[i], c, s))
			}
		}
	}
	return out
}

// patcherMoves are what the patcher's step can lead to, or a store of its that becomes
// visible.
func (r *rules) patcherMoves(w *whole) (out []whole) {
	if out, ok := r.moves[*w]; ok {
		return out
	}
	p := w.patcher[place]
	list, ok := r.ofPatcher[p]
	if !ok {
		list = slices.Concat(unbroken(r.stepsOfPatcher(p, nil)), r.drained)
		r.ofPatcher[p] = list
	}
	for i := range list {
		b := &list[i]
		for c := range r.actors(b.onCPU, r.cpus) {
			for s := range r.actors(b.onSite, r.sites) {
				for picks := range r.subsets(b.picks) {
					from := *w
					for k := range r.sites {
						from.site[k][chosen] = number(picks >> k & 1)
					}
					if r.may(&from, b, c, s) {
						out = append(out, r.after(&from, b, c, s))
					}
				}
			}
		}
	}
	r.moves[*w] = out
	return out
}

// actors is how many there are to make a step, where it takes one.
func (r *rules) actors(takes bool, n int) int {
	if takes {
		return n
	}
	return 1
}

// subsets is how many choices of sites there are, where a step goes by one.
func (r *rules) subsets(picks bool) int {
	if picks {
		return 1 << r.sites
	}
	return 1
}

// outside names a CPU and a site whose view is none of the certificate's.
func (r *rules) outside(w *whole) (c, s int, out bool) {
	for c := range r.cpus {
		for s := range r.sites {
			if _, ok := r.index[r.viewOf(w, c, s)]; !ok {
				return c, s, true
			}
		}
	}
	return 0, 0, false
}

// viewOf is what a CPU and a site are to each other.
func (r *rules) viewOf(w *whole, c, s int) (v view) {
	for a := range numAttrs {
		v[a] = *w.place(a, c, s)
	}
	if int(w.at[c]) != s {
		v[does] = r.elsewhere(v[does])
	}
	return v
}
