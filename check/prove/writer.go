// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// writer writes the obligations of one machine.
type writer struct {
	*closure
	form
	size [numAttrs]int // values that each attribute's sort has
	head string
}

// elsewhereCubes are the views of CPUs that are elsewhere, by their states there.
func (c *closure) elsewhereCubes(inv []cube) (out []cube) {
	from := map[number]values{}
	for d := range len(c.cpus.list) {
		e := c.elsewhere(number(d))
		from[e] = from[e].union(only(number(d)))
	}
	for _, x := range inv {
		var ds values
		for _, e := range x[does].list(len(c.cpus.list)) {
			ds = ds.union(from[e])
		}
		if x[does] = ds; ds != (values{}) {
			out = append(out, x)
		}
	}
	return joined(out)
}

// lookAround numbers what all states of CPUs look like from elsewhere and without their promise.
func (m *machine) lookAround() {
	for d := 0; d < len(m.cpus.list); d++ {
		m.elsewhere(number(d))
		m.older(number(d))
	}
}

// newWriter declares the state and defines the invariant.
func newWriter(c *closure, f form, inv []cube) *writer {
	w := &writer{closure: c, form: f}
	c.lookAround()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("(set-logic ALL)\n(declare-sort Cpu 0)\n(declare-sort Site 0)")
	for a := range numAttrs {
		w.size[a] = c.machine.size(a)
		if isBool(a) {
			continue
		}
		var names []string
		for x := range w.size[a] {
			names = append(names, "("+val(a, number(x))+")")
			line("; %s: %s", val(a, number(x)), c.value(a, number(x)))
		}
		if a == window {
			line("; noWindow: one that no view has")
			names = append(names, "(noWindow)")
		}
		line("(declare-datatypes ((%s 0)) ((%s)))", sortOf(a), strings.Join(names, " "))
	}
	for a := range numAttrs {
		line("(declare-fun %s (%s) %s)", a, params(a), sortOf(a))
	}
	line("(declare-fun at (Cpu) Site)")
	line(
		"(declare-const c0 Cpu)\n(declare-const s0 Site)\n(declare-const c1 Cpu)\n(declare-const s1 " +
			"Site)\n(declare-const c9 Cpu)",
	)
	w.tables(line)
	w.invariant(line, "V", inv)
	w.invariant(line, "W", w.elsewhereCubes(inv))
	w.head = b.String()
	return w
}

// invariant defines the cases of a view.
func (w *writer) invariant(line func(string, ...any), name string, inv []cube) {
	args := spelling.Each(state(), func(a attr) string { return fmt.Sprintf("(%s_ %s)", a, sortOf(a)) })
	var cases []string
	for _, x := range inv {
		var all []string
		for _, a := range state() {
			is := w.is(a, a.String()+"_", x[a])
			if a == window && is == "true" { // any that a view has
				is = "(not (= window_ noWindow))"
			}
			if is != "true" {
				all = append(all, is)
			}
		}
		cases = append(cases, conj(all))
	}
	line("(define-fun %s (%s) Bool (or\n %s))", name, strings.Join(args, " "), strings.Join(append(cases, "false"), "\n "))
}

// tables defines what a CPU looks like from elsewhere and without its promise, and what
// a window becomes.
func (w *writer) tables(line func(string, ...any)) {
	old, just := "d", "noWindow"
	for d := range w.size[does] {
		d := number(d)
		if o := w.older(d); o != d {
			old = ite(fmt.Sprintf("(= d %s)", val(does, d)), val(does, o), old)
		}
	}
	line("(define-fun older ((d Does)) Does %s)", old)
	have := len(w.windows.list)
	name := func(x number) string {
		if int(x) >= have || int(x) >= w.size[window] {
			return "noWindow"
		}
		return val(window, x)
	}
	for t := range w.size[text] {
		just = ite(fmt.Sprintf("(= t %s)", val(text, number(t))), name(w.onlyText(number(t))), just)
	}
	line("(define-fun just ((t Text)) Window %s)", just)
	for t := range w.size[text] {
		to := "noWindow"
		for x := range w.size[window] {
			to = ite(fmt.Sprintf("(= w %s)", val(window, number(x))), name(w.pushed(number(x), number(t))), to)
		}
		line("(define-fun push%d ((w Window)) Window %s)", t, to)
	}
	w.windows.list = w.windows.list[:have]
}

// outcome is branches that amount to the same: one of the cubes holds of the actor.
type outcome struct {
	branch
	about bool // the CPU is about the acting site already
	cases []cube
}

// outcomes joins branches that amount to the same.
func (w *writer) outcomes(list []branch) (out []outcome) {
	at := map[string]int{}
	for _, b := range list {
		o := outcome{branch: b}
		var x cube
		for a := range numAttrs {
			x[a] = without(values{}, max(w.size[a], 2))
		}
		o.when = nil
		for _, c := range b.when {
			if c.who != own {
				o.when = append(o.when, c)
				continue
			}
			t := c.any[0]
			for i := range t.in {
				x[t.attr][i] &= t.in[i]
			}
			if d := t.in.list(w.size[does]); t.attr == does && len(d) == 1 {
				o.about = w.about(d[0])
			}
		}
		key := fmt.Sprint(o.about, o.onCPU, o.onSite, o.key())
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, o)
		}
		out[i].cases = append(out[i].cases, x)
	}
	for i := range out {
		out[i].cases = joined(out[i].cases)
	}
	return out
}

// guard says when an outcome can be.
func (w *writer) guardOf(o *outcome) string {
	var cases []string
	for _, x := range o.cases {
		var all []string
		for a := range numAttrs {
			if is := w.is(a, term(a, "", "c0", "s0"), x[a]); is != "true" {
				all = append(all, is)
			}
		}
		cases = append(cases, conj(all))
	}
	all := []string{disj(cases)}
	if o.about {
		all = append(all, "(= (at c0) s0)")
	}
	for _, c := range o.when {
		tests := func(cpu, site string) string {
			return disj(spelling.Each(c.any, func(t test) string { return w.is(t.attr, term(t.attr, "", cpu, site), t.in) }))
		}
		switch {
		case c.who == someHere:
			all = append(all, tests("c9", "s0"), "(= (at c9) s0)")
		case c.who == some:
			all = append(all, tests("c9", "s0"))
		case attrs[c.any[0].attr].of == ofCPU:
			all = append(all, w.everyCPU(func(x string) string { return tests(x, "") }))
		default:
			all = append(all, w.everySite(func(x string) string { return tests("", x) }))
		}
	}
	return conj(all)
}

// next defines an attribute after a step, for whichever outcome it has.
func (w *writer) next(a attr, outs []outcome) string {
	old := term(a, "", "c", "s")
	expr := old
	for i := range slices.Backward(outs) {
		is := old
		for _, u := range outs[i].then {
			if u.attr == a {
				is = w.updated(u, old, is)
			}
		}
		if is != old {
			expr = ite(fmt.Sprintf("(= b b%d)", i), is, expr)
		}
	}
	var decl string
	switch attrs[a].of {
	case ofSite:
		decl = "(s Site)"
	case ofCPU:
		decl = "(c Cpu)"
	case ofPair:
		decl = "(c Cpu) (s Site)"
	}
	return fmt.Sprintf("(define-fun %s-next (%s) %s %s)\n", a, decl, sortOf(a), expr)
}

// updated is an attribute after one update, where it was old, and is otherwise.
func (w *writer) updated(u update, old, otherwise string) string {
	var to string
	switch u.how {
	case set:
		to = val(u.attr, u.to)
	case push:
		to = fmt.Sprintf("(push%d %s)", u.to, old)
	case fresh:
		to = "(just (text s))"
	case older:
		to = "(older " + old + ")"
	}
	var when []string
	of := attrs[u.attr].of
	if u.ofCPUs == own && (of == ofCPU || of == ofPair) && u.how != older {
		when = append(when, "(= c c0)")
	}
	if u.ofSites == own && (of == ofSite || of == ofPair) {
		when = append(when, "(= s s0)")
	}
	if u.how == older {
		when = append(when, "(= (at c) s0)")
	}
	for _, t := range u.provided {
		when = append(when, w.is(t.attr, term(t.attr, "", "c", "s"), t.in))
	}
	return ite(conj(when), to, otherwise)
}

// step is the obligation that a step leads from views to views.
func (w *writer) step(name string, branches []branch) Obligation {
	outs := w.outcomes(branches)
	var names, guards []string
	for i := range outs {
		names = append(names, fmt.Sprintf("(b%d)", i))
		guards = append(guards, fmt.Sprintf("(and (= b b%d) %s)", i, w.guardOf(&outs[i])))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "(declare-datatypes ((Outcome 0)) ((%s)))\n(declare-const b Outcome)\n", strings.Join(names, " "))
	fmt.Fprintf(&b, "(assert %s)\n", w.everyPair(func(c, s string) string { return inView("", c, s) }))
	fmt.Fprintf(&b, "(assert %s)\n", disj(guards))
	for _, a := range state() {
		b.WriteString(w.next(a, outs))
	}
	at := "(at c)"
	if len(outs) > 0 && outs[0].onCPU && outs[0].onSite {
		at = "(ite (= c c0) s0 (at c))"
	}
	fmt.Fprintf(&b, "(define-fun at-next ((c Cpu)) Site %s)\n", at)
	return Obligation{
		Name:  "step-" + slug(name),
		Step:  name,
		About: "every view behind this step is one of the views: " + name,
		Fires: w.fired[name],
		head:  w.head,
		guard: b.String(),
		goal:  fmt.Sprintf("(assert (not %s))\n", inView("-next", "c1", "s1")),
	}
}
