// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"slices"
	"strings"
)

// Rules say what a kernel's code shows, in the order of their file: a line with a rule's name and,
// if it has them, an instruction set and what it is about; below it, indented, its cases, of which
// the first holds whose conditions do. mechanisms.rules has many.
//
//	NAME ARCH | ABOUT
//		let VARIABLE FUNCTION...                            the first of some functions that is there
//		VALUE if [not] CONDITION and ... | EVIDENCE
//		fails FUNCTION                                      whose calls are the reason where no case holds
type Rules []Rule

// Rule is how one thing shows in a kernel's code.
type Rule struct {
	Name, Arch, Doc string // Arch is "" for all

	lets  [][]string // a variable and functions
	fails string
	cases []ruleCase
}

// ruleCase is a value with the conditions under which it holds, and the evidence.
type ruleCase struct {
	value, evidence string
	conditions      [][]string
}

// Answer is what a rule says of a kernel.
type Answer struct{ Value, Evidence string }

// notUnderstood is the value of an answer that gives a reason in place of evidence.
const notUnderstood = "?"

// MustRules reads rules that come with the program; a mistake in them is ours.
func MustRules(text string) (all Rules) {
	var lists []string // names of functions, each behind its name
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		head, rest, _ := strings.Cut(strings.NewReplacer(lists...).Replace(line), " | ")
		words := strings.Fields(head)
		switch {
		case len(words) == 0 || words[0] == "#" || strings.HasPrefix(words[0], "# "):
		case line[0] == '$':
			lists = append(lists, words[0], strings.Join(words[2:], " "))
		case line[0] != '\t':
			r := Rule{Name: words[0], Doc: rest}
			if len(words) > 1 {
				r.Arch = words[1]
			}
			all = append(all, r)
		default:
			all[len(all)-1].read(words, rest)
		}
	}
	return all
}

// read adds a line below a rule's name.
func (r *Rule) read(words []string, evidence string) {
	switch words[0] {
	case "let":
		r.lets = append(r.lets, words[1:])
		return
	case "fails":
		r.fails = words[1]
		return
	}
	c := ruleCase{value: words[0], evidence: evidence}
	for i, word := range words[1:] {
		switch {
		case i == 0 || word == "and":
			c.conditions = append(c.conditions, nil)
		default:
			last := len(c.conditions) - 1
			c.conditions[last] = append(c.conditions[last], word)
		}
	}
	for _, condition := range c.conditions {
		name := condition[0]
		if name == "not" {
			name = condition[1]
		}
		if conditions[name] == nil {
			panic(fmt.Sprintf("rule %s: no condition %q", r.Name, name))
		}
	}
	r.cases = append(r.cases, c)
}

// examiner holds a kernel against rules.
type examiner struct {
	*Kernel
	answers map[string]Answer // of the rules before
	said    map[string]string // by what the conditions of a case found
}

// Judge is what a rule says of a kernel, after other rules gave some answers, by their names. ok is
// false where no case holds: the answer's evidence is the reason.
func (k *Kernel) Judge(r *Rule, answers map[string]Answer) (a Answer, ok bool) {
	x := &examiner{k, answers, map[string]string{}}
	variables := map[string]string{}
	for _, l := range r.lets {
		variables[l[0]] = k.first(l[1:]...)
	}
	for _, c := range r.cases {
		x.said = map[string]string{}
		for name, v := range variables {
			x.said[name] = v
		}
		if !slices.ContainsFunc(c.conditions, func(condition []string) bool { return !x.holds(condition) }) {
			a = Answer{x.fill(c.value), x.fill(c.evidence)}
			if other, known := answers[a.Value]; known {
				a.Value = other.Value
			}
			break
		}
	}
	if a.Value != "" && a.Value != notUnderstood {
		return a, true
	}
	if a.Evidence == "" {
		x.said = variables
		a.Evidence = k.whatCalled(x.fill(r.fails))
	}
	return Answer{notUnderstood, a.Evidence}, false
}

// fill puts what conditions found, and the evidence of other rules, into a text.
func (x *examiner) fill(text string) string {
	for {
		before, rest, open := strings.Cut(text, "{")
		name, behind, closed := strings.Cut(rest, "}")
		if !open || !closed {
			return text
		}
		v, known := x.said[name]
		if !known {
			v = x.answers[name].Evidence
		}
		text = before + v + behind
	}
}

// holds tells whether a condition does.
func (x *examiner) holds(condition []string) bool {
	if condition[0] == "not" {
		return !x.holds(condition[1:])
	}
	args := make([]string, len(condition)-1)
	for i, word := range condition[1:] {
		args[i] = x.fill(word)
	}
	return conditions[condition[0]](x, args)
}

// found notes what a condition found, unless one before did.
func (x *examiner) found(name, value string) {
	if _, ok := x.said[name]; !ok {
		x.said[name] = value
	}
}

// first is the first of some functions that the kernel has, "" if it has none.
func (k *Kernel) first(names ...string) string {
	i := slices.IndexFunc(names, func(n string) bool { return len(k.Parts[n]) > 0 })
	if i < 0 {
		return ""
	}
	return names[i]
}

// whatCalled says what a function calls.
func (k *Kernel) whatCalled(name string) string {
	if len(k.Parts[name]) == 0 {
		return name + " is not there"
	}
	calls := sortedNames(k.Calls(name))
	if len(calls) == 0 {
		return name + " calls nothing directly"
	}
	if len(calls) > 8 {
		calls = append(calls[:8:8], "...")
	}
	return name + " calls " + strings.Join(calls, ", ")
}
