// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/records/vmlinux"
)

// Rules say what a kernel's code shows, in the order of their file: a line with a rule's name and,
// if it has them, an instruction set and a description; below it, indented, its cases. The first
// case whose conditions hold is the answer. mechanisms.rules has many.
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
	said    map[string]string // texts that the conditions of a case have found, by name
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
		maps.Copy(x.said, variables)
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
	return conditions[condition[0]](x, spelling.Each(condition[1:], x.fill))
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

// broadcasts are functions that interrupt every other CPU, over the releases, as mechanisms.rules
// has them.
var broadcasts = []string{"on_each_cpu_cond_mask", "on_each_cpu", "text_poke_sync", "smp_text_poke_sync_each_cpu", "run_sync"}

// conditions are what the cases of rules ask, by the words that stand there. FROM may be several
// functions, as f|g; the first that leads anywhere counts. Those that find something say what in
// braces, for the evidence.
var conditions = map[string]func(x *examiner, args []string) bool{
	// One of some functions is there, or none of them; one of some symbols is, or a function's
	// variable of a name, which compilers number.
	"there":    func(x *examiner, args []string) bool { return x.first(args...) != "" },
	"absent":   func(x *examiner, args []string) bool { return x.first(args...) == "" },
	"named":    func(x *examiner, args []string) bool { return slices.ContainsFunc(args, x.Has) },
	"variable": (*examiner).variable,
	// FROM leads by at most N direct calls to the first of some others: {way}. through A N B M C
	// is the way from A to B and on to C.
	"leads":   func(x *examiner, args []string) bool { return x.leads(args[0], args[1], args[2:]) },
	"through": (*examiner).through,
	// A function's code names functions that interrupt every other CPU, at least N times: {n}.
	"calls": (*examiner).calls,
	// Another rule's answer is above 0, or one of some numbers; or it has none.
	"value":   (*examiner).value,
	"unknown": func(x *examiner, args []string) bool { return x.answers[args[0]].Value == "" },
	// The functions that queue patches were executed: {rounds}, {said}, and a lower address did not
	// end a batch; the vector's slots are known: {slots}, {how}. A single poke, executed, goes alone, or is queued, or cannot be.
	"batch":  (*examiner).batch,
	"sorted": func(x *examiner, _ []string) bool { b, err := x.RunBatch(); return err == nil && !b.FromOrder },
	"slots":  (*examiner).slotsKnown,
	"single": (*examiner).single,
	// Each record has a literal that names an ops; tasks are preempted: {preempt}.
	"call-ops":  func(x *examiner, _ []string) bool { return x.CallOps() },
	"preempted": func(x *examiner, _ []string) bool { x.found("preempt", x.Preempt()); return x.Preempt() != "" },
	// Bytes are behind the text, words anywhere; a function of riscv64 or arm64 has an instruction; one
	// of some functions touches SYMBOL+N: {f}; a function's code names a place in N bytes of SYMBOL.
	"constant": (*examiner).constant,
	"contains": func(x *examiner, args []string) bool { return x.Contains(args[0]) },
	"executes": (*examiner).executes,
	"touches":  (*examiner).touches,
	"refers":   (*examiner).refers,
	// Type information knows a structure, or its member.
	"member": func(x *examiner, args []string) bool {
		members := x.Members(args[0])
		return len(members) > 0 && (len(args) == 1 || members[args[1]])
	},
}

// whole is a number of a rule.
func whole(s string) int {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic(fmt.Sprintf("rules: %v", err)) // a mistake of ours
	}
	return int(n)
}

func (x *examiner) variable(args []string) bool {
	return slices.ContainsFunc(x.All, func(s vmlinux.Symbol) bool { return s.Name == args[0] || strings.HasPrefix(s.Name, args[0]+".") })
}

func (x *examiner) leads(from, depth string, to []string) bool {
	for f := range strings.SplitSeq(from, "|") {
		for _, name := range to {
			if way := x.Path(f, name, whole(depth)); way != nil {
				x.found("way", strings.Join(way, " calls "))
				return true
			}
		}
	}
	return false
}

func (x *examiner) through(args []string) bool {
	way := x.Path(args[0], args[2], whole(args[1]))
	on := x.Path(args[2], args[4], whole(args[3]))
	if way == nil || on == nil {
		return false
	}
	x.found("way", strings.Join(append(way, on[1:]...), " calls "))
	return true
}

func (x *examiner) calls(args []string) bool {
	n, calls := 0, x.Calls(args[0])
	for _, to := range args[2:] {
		n += calls[to]
	}
	x.found("n", strconv.Itoa(n))
	return n >= whole(args[1])
}

func (x *examiner) value(args []string) bool {
	v := x.answers[args[0]].Value
	return slices.Contains(args[1:], v) || len(args) == 1 && v != "" && v != "0"
}

func (x *examiner) batch([]string) bool {
	b, err := x.RunBatch()
	x.found("rounds", strconv.Itoa(b.Rounds))
	x.found("said", b.said())
	return err == nil
}

func (x *examiner) slotsKnown([]string) bool {
	n, how := x.Slots()
	x.found("slots", strconv.Itoa(n))
	x.found("how", how)
	return n > 0
}

func (x *examiner) single(args []string) bool {
	alone, err := x.RunSingle()
	x.found("error", fmt.Sprint(err))
	switch args[0] {
	case "alone":
		return err == nil && alone
	case "queued":
		return err == nil && !alone
	}
	return err != nil
}

func (x *examiner) constant(args []string) bool {
	b, err := hex.DecodeString(args[0])
	if err != nil {
		panic(fmt.Sprintf("rules: %v", err)) // a mistake of ours
	}
	_, text, ok := x.Limits("_stext", "_etext")
	return ok && bytes.Contains(x.At(text), b)
}

func (x *examiner) executes(args []string) bool { return x.HoldsWord(args[0], uint32(whole(args[1]))) }

func (x *examiner) touches(args []string) bool {
	at, ok := x.Addr(args[0])
	for _, f := range args[2:] {
		if ok && x.Touches(f, at+uint64(whole(args[1]))) {
			x.found("f", f)
			return true
		}
	}
	return false
}

func (x *examiner) refers(args []string) bool {
	at, ok := x.Addr(args[1])
	return ok && slices.ContainsFunc(x.Refs(args[0]), func(to uint64) bool { return at <= to && to < at+uint64(whole(args[2])) })
}
