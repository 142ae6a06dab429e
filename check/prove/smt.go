// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"strings"
)

// Obligation is one file for a solver: unsat is what it must answer.
type Obligation struct {
	Name  string // of the file, without its ending
	About string // in a line
	Step  string // the step that it is about, "" for none
	Fires bool   // some view makes the step
	head  string
	guard string
	goal  string
}

// Text is the obligation as a script for a solver. Without its goal it must be
// satisfiable, or its step can never be made.
func (o *Obligation) Text(goal bool) string { return "; " + o.About + "\n" + o.script(goal) }

// script is the text without what it is about.
func (o *Obligation) script(goal bool) string {
	s := o.head + o.guard
	if goal {
		s += o.goal
	}
	return s + "(check-sat)\n"
}

// form is how "for all CPUs and sites" is written: with quantifiers, or by all that
// there is to be had of the CPUs and sites that an obligation is about. CPUs have a
// site, and nothing leads from a site to a CPU: there are no others.
type form struct {
	quantified bool
	cpus       []string
	sites      []string
}

var (
	quantified = form{quantified: true}
	ground     = form{cpus: []string{"c0", "c1", "c9"}, sites: []string{"s0", "s1", "(at c9)"}}
)

func (f form) everyCPU(say func(c string) string) string {
	if f.quantified {
		return "(forall ((c Cpu)) " + say("c") + ")"
	}
	return conj(each(f.cpus, say))
}

func (f form) everySite(say func(s string) string) string {
	if f.quantified {
		return "(forall ((s Site)) " + say("s") + ")"
	}
	return conj(each(f.sites, say))
}

func (f form) everyPair(say func(c, s string) string) string {
	if f.quantified {
		return "(forall ((c Cpu) (s Site)) " + say("c", "s") + ")"
	}
	return conj([]string{say("c0", "s0"), say("c0", "s1"), say("c1", "s0"), say("c1", "s1"), say("c9", "(at c9)")})
}

func each(list []string, say func(string) string) (out []string) {
	for _, x := range list {
		out = append(out, say(x))
	}
	return out
}

func conj(list []string) string { return nary("and", "true", list) }
func disj(list []string) string { return nary("or", "false", list) }

func nary(op, none string, list []string) string {
	switch len(list) {
	case 0:
		return none
	case 1:
		return list[0]
	}
	return "(" + op + " " + strings.Join(list, " ") + ")"
}

func ite(when, then, otherwise string) string {
	if then == otherwise || when == "true" {
		return then
	}
	return "(ite " + when + " " + then + " " + otherwise + ")"
}

// isBool tells whether an attribute is true or false.
func isBool(a attr) bool { return attrs[a].size == 2 }

// sort is an attribute's sort.
func sortOf(a attr) string {
	if isBool(a) {
		return "Bool"
	}
	n := a.String()
	return strings.ToUpper(n[:1]) + n[1:]
}

// val is a value of an attribute.
func val(a attr, x number) string {
	if isBool(a) {
		return []string{"false", "true"}[x]
	}
	return fmt.Sprintf("%s%d", a, x)
}

// is says that a term is one of some values.
func (w *writer) is(a attr, term string, in values) string {
	list := in.list(w.size[a])
	if len(list) == w.size[a] {
		return "true"
	}
	if isBool(a) {
		if in.has(1) {
			return term
		}
		return "(not " + term + ")"
	}
	var any []string
	for _, x := range list {
		any = append(any, fmt.Sprintf("(= %s %s)", term, val(a, x)))
	}
	return disj(any)
}

// term is an attribute in a state, of a CPU and a site; after is "" or "-next".
func term(a attr, after, c, s string) string {
	switch attrs[a].of {
	case ofSite:
		return fmt.Sprintf("(%s%s %s)", a, after, s)
	case ofCPU:
		return fmt.Sprintf("(%s%s %s)", a, after, c)
	case ofPair:
		return fmt.Sprintf("(%s%s %s %s)", a, after, c, s)
	}
	return a.String() + after
}

// of declares what an attribute takes.
func params(a attr) string {
	switch attrs[a].of {
	case ofSite:
		return "Site"
	case ofCPU:
		return "Cpu"
	case ofPair:
		return "Cpu Site"
	}
	return ""
}

// state are the attributes that a state has.
func state() (list []attr) {
	for a := range numAttrs {
		if a != chosen {
			list = append(list, a)
		}
	}
	return list
}

// inView says that the view of a CPU and a site is one of those that there can be: V
// where the CPU is at the site, W where it is not.
func inView(after, c, s string) string {
	var args []string
	for _, a := range state() {
		args = append(args, term(a, after, c, s))
	}
	all := strings.Join(args, " ")
	return fmt.Sprintf("(ite (= (at%s %s) %s) (V %s) (W %s))", after, c, s, all, all)
}
