// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// broken is a property that a view's step breaks.
type broken struct {
	property cpus.Property
	why      string
	step     string
	at       int // the view
}

// closure is all views that there can be, and how each came about.
type closure struct {
	*machine
	views  []view
	index  map[view]int
	from   []int    // the view before; -1
	by     []string // the step that led from there
	broken []broken // the first way to break each property
	steps  int      // from one view to another

	fired   map[string]bool // names of steps that some view makes
	foreign map[number][]branch
	noted   map[string]bool
	looks   map[number][]int // views, by the CPU's state
	crowd   map[view]values  // what CPUs do that others look for: by the patcher's own attributes, and by the site's too
	grew    bool             // crowd has grown
}

// closeViews goes from view to view until no step leads to another one. Steps that break
// something lead nowhere. It ends early when ctx does, and with the limit that is hit.
func (m *machine) closeViews(ctx context.Context) (c *closure, err error) {
	c = &closure{machine: m, index: map[view]int{}, fired: map[string]bool{}, foreign: map[number][]branch{},
		noted: map[string]bool{}, looks: map[number][]int{}, crowd: map[view]values{}}
	defer func() {
		switch l := recover().(type) {
		case nil:
		case limit:
			err = &LimitError{string(l)}
		default: // a mistake of ours must not look like an end
			panic(l)
		}
	}()
	for _, v := range m.initial() {
		c.add(v, -1, "at first")
	}
	for i := 0; i < len(c.views) || c.grew; i++ {
		if i == len(c.views) { // what only some state allows, in those that were seen before
			i, c.grew = 0, false
		}
		if i&255 == 0 && ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		c.expand(i)
	}
	return c, nil
}

// LimitError says that the views are more than there is room for.
type LimitError struct{ What string }

func (e *LimitError) Error() string { return e.What }

// has are the values that views have of an attribute.
func (c *closure) has(a attr) (s values) {
	for _, v := range c.views {
		s = s.union(only(v[a]))
	}
	return s
}

// unreached is a step of the patcher's program that no view makes; "" for none. Everything
// holds behind a step that is never made, so a proof with such a step says nothing.
func (c *closure) unreached() string {
	at := map[uint16]bool{}
	for _, p := range c.has(place).list(len(c.places.list)) {
		at[c.places.list[p].item] = true
	}
	for i := range c.program.items {
		if !at[uint16(i)] {
			return c.spell(spot{item: uint16(i)})
		}
	}
	return ""
}

// part is what a view says of the patcher, or of whom else it is asked for. What it leaves out is a number that no
// attribute has.
func (v *view) part(of ...locus) (p view) {
	for a := range numAttrs {
		if p[a] = number(maxValues + 1); slices.Contains(of, attrs[a].of) {
			p[a] = v[a]
		}
	}
	return p
}

// add notes a view.
func (c *closure) add(v view, from int, by string) {
	c.steps++
	if _, ok := c.index[v]; ok {
		return
	}
	i := len(c.views)
	c.index[v] = i
	c.views, c.from, c.by = append(c.views, v), append(c.from, from), append(c.by, by)
	c.looks[v[does]] = append(c.looks[v[does]], i)
	if is := &c.cpus.list[v[does]]; c.code.Path.Holds(is.Phase) || is.Role == ofPreempted {
		for _, of := range []view{v.part(ofPatcher), v.part(ofPatcher, ofSite)} {
			c.grew = c.grew || !c.crowd[of].has(v[does])
			c.crowd[of] = c.crowd[of].union(only(v[does]))
		}
	}
	for _, b := range c.foreign[v[does]] {
		c.apply(i, &b, part{cpu: true})
	}
}

// expand makes every step that concerns a view.
func (c *closure) expand(i int) {
	v := c.views[i]
	for _, b := range c.stepsOfCPU(v[does], &v) {
		c.noteElsewhere(v[does], b)
		c.apply(i, &b, part{cpu: true, site: true})
	}
	for _, b := range c.foreign[v[does]] { // the crowd may have grown since these were noted
		if slices.ContainsFunc(b.when, func(w cond) bool { return w.who == some }) {
			c.apply(i, &b, part{cpu: true})
		}
	}
	for _, b := range slices.Concat(c.stepsOfPatcher(v[place], &v), c.stepsOfOthers(v[place]), c.drains(&v)) {
		c.apply(i, &b, part{b.onCPU, b.onSite})
		if b.broken != "" {
			continue
		}
		if b.onCPU {
			c.apply(i, &b, part{site: b.onSite})
		}
		if b.onSite {
			c.apply(i, &b, part{cpu: b.onCPU})
		}
		if b.onCPU && b.onSite {
			c.apply(i, &b, part{})
		}
	}
}

// noteElsewhere notes a CPU's step as the views of other sites see it: they do not know
// the attributes of the CPU's own site.
func (c *closure) noteElsewhere(d number, b branch) {
	if b.broken != "" {
		return
	}
	e := c.elsewhere(d)
	there := branch{name: b.name + " elsewhere", onCPU: true, rare: b.rare}
	for _, w := range b.when {
		if w.who == someHere { // this site does not know the other one
			w.who = some
		}
		if a := w.any[0].attr; w.who != own || a != does && attrs[a].of != ofSite && attrs[a].of != ofPair {
			there.when = append(there.when, w)
		}
	}
	changes := false
	for _, u := range b.then {
		if u.attr == does {
			u.to = c.elsewhere(u.to)
			changes = changes || u.to != e
		} else {
			changes = true
		}
		there.then = append(there.then, u)
	}
	key := string(rune(e)) + there.key()
	if !changes || c.noted[key] {
		return
	}
	c.noted[key] = true
	c.foreign[e] = append(c.foreign[e], there)
	for _, i := range c.looks[e] {
		c.apply(i, &there, part{cpu: true})
	}
}

// apply makes a step from a view, if it can be made there.
func (c *closure) apply(i int, b *branch, p part) {
	for pick := range number(2) {
		v := c.views[i]
		if v[chosen] = pick; pick == 1 && !b.picks {
			return
		}
		if !c.may(&v, b, p) {
			continue
		}
		if b.broken != "" {
			c.breaks(i, b)
			continue
		}
		c.fired[b.name] = true
		to := c.after(&v, b, p)
		to[chosen] = 0
		c.add(to, i, b.name)
	}
}

// may tells whether a view lets a step be made.
func (c *closure) may(v *view, b *branch, p part) bool {
	for _, w := range b.when {
		switch {
		case w.who == own && !p.concerns(w.any[0].attr):
		case anyHolds(w.any, v):
		case w.who == some && w.any[0].attr == does && c.crowd[v.part(ofPatcher)].meets(w.any[0].in):
		case w.who == someHere && c.crowd[v.part(ofPatcher, ofSite)].meets(w.any[0].in):
		default:
			return false
		}
	}
	return true
}

// after is the view behind a step.
func (m *machine) after(v *view, b *branch, p part) view {
	to := *v
	for _, u := range b.then {
		of := attrs[u.attr].of
		onlyOne := u.ofCPUs == own && (of == ofCPU || of == ofPair) && !p.cpu ||
			u.ofSites == own && (of == ofSite || of == ofPair || u.how == older) && !p.site
		if onlyOne || !allHold(u.provided, v) {
			continue
		}
		switch u.how {
		case set:
			to[u.attr] = u.to
		case push:
			to[window] = m.pushed(v[window], u.to)
		case fresh:
			to[window] = m.onlyText(v[text])
		case older:
			to[does] = m.older(v[does])
		}
	}
	return to
}

func (c *closure) breaks(i int, b *branch) {
	for _, x := range c.broken {
		if x.property == b.broken {
			return
		}
	}
	c.broken = append(c.broken, broken{b.broken, b.why, b.name, i})
}
