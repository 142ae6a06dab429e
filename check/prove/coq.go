// SPDX-License-Identifier: Apache-2.0

package prove

import (
	_ "embed"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/internal/spelling"
)

// The files that every protocol shares: the machine and its steps, the check of a table with the proof that it is
// enough, and the theorem.
var (
	//go:embed coq/Machine.v
	coqMachine string
	//go:embed coq/Safe.v
	coqSafe string
	//go:embed coq/Proof.v
	coqProof string
)

// Coq is a proof's files for Coq, by their names: coqc 8.16, which Debian has, reads Machine.v, Safe.v, Table.v
// and Proof.v one after the other. Table.v has the protocol's steps and the views; the others are written by hand.
func (p *Proof) Coq() map[string]string {
	table := p.closure.coqTable()
	return map[string]string{"Machine.v": coqMachine, "Safe.v": coqSafe, "Table.v": table, "Proof.v": coqProof}
}

// coqTable is the steps and the views as data.
func (c *closure) coqTable() string {
	steps, broken := c.allSteps() // from here on every number is known
	w := newWriter(c, ground, nil)
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("From Coq Require Import NArith List.\nImport ListNotations.\nRequire Import Machine.\nOpen Scope N_scope.\n")
	for _, a := range state() {
		for x := range w.size[a] {
			if !isBool(a) {
				line("(* %s %d: %s *)", a, x, strings.ReplaceAll(c.value(a, number(x)), `"`, "'"))
			}
		}
	}
	line("\nDefinition all_views : list (list N) := [")
	var rows []string
	for i := range c.views {
		rows = append(rows, c.views[i].coq())
	}
	line("%s].\n\nDefinition all_steps : list step := [", strings.Join(rows, ";\n"))
	line("%s].\n", strings.Join(w.coqSteps(append(steps, broken...)), ";\n"))
	var idle, elsewhere, older, just []number
	var push []string
	var about values
	for _, v := range c.initial() {
		idle = append(idle, v[does])
	}
	for d := range number(w.size[does]) {
		elsewhere, older = append(elsewhere, c.elsewhere(d)), append(older, c.older(d))
		if c.about(d) {
			about = about.union(only(d))
		}
	}
	have := len(c.windows.list) // windows beyond are in no view
	for t := range number(w.size[text]) {
		just = append(just, c.onlyText(t))
		var to []number
		for x := range number(have) {
			to = append(to, c.pushed(x, t))
		}
		push = append(push, coqNumbers(to))
	}
	c.windows.list = c.windows.list[:have]
	line("Definition protocol := Table all_views all_steps\n  %s\n  %s\n  %s\n  %s\n  %s\n  %s\n  %s.", c.first.coq(),
		coqNumbers(idle), w.coqSet(does, about), coqNumbers(elsewhere), coqNumbers(older), coqList(push), coqNumbers(just))
	return b.String()
}

// coqSteps are all steps, what amounts to the same joined, behind a comment where the name is another one.
func (w *writer) coqSteps(all []named) (list []string) {
	for _, s := range all {
		comment := "(* " + s.name + " *) "
		for _, o := range w.outcomes(s.branches) {
			var others, then []string
			for _, c := range o.when {
				scope := "EverySite "
				switch {
				case c.who == someHere:
					scope = "SomeHere "
				case c.who == some:
					scope = "SomeCpu "
				case attrs[c.any[0].attr].of == ofCPU:
					scope = "EveryCpu "
				}
				others = append(others, scope+w.coqTests(c.any))
			}
			for _, u := range o.then {
				how := [...]string{set: fmt.Sprintf("(Become %d)", u.to), push: fmt.Sprintf("(Push %d)", u.to), fresh: "Fresh",
					older: "Older"}[u.how]
				then = append(then, fmt.Sprintf("Update %s %s %t %t %s", u.attr, how, u.ofCPUs == every, u.ofSites == every,
					w.coqTests(u.provided)))
			}
			for _, x := range o.cases {
				var when []string
				for _, a := range append(state(), chosen) {
					if len(x[a].list(w.size[a])) < w.size[a] {
						when = append(when, "Own "+w.coqTests([]test{{a, x[a]}}))
					}
				}
				list = append(list, fmt.Sprintf("%sStep %t %t %s %s", comment, o.broken != "", o.onCPU && o.onSite,
					coqList(append(when, others...)), coqList(then)))
				comment = ""
			}
		}
	}
	return list
}

func (w *writer) coqTests(tests []test) string {
	return coqList(spelling.Each(tests, func(t test) string {
		return fmt.Sprintf("Test %s %s", t.attr, w.coqSet(t.attr, t.in))
	}))
}

// coqSet is a set of values as a number: bit x for value x.
func (w *writer) coqSet(a attr, in values) string {
	n := new(big.Int)
	for _, x := range in.list(w.size[a]) {
		n.SetBit(n, int(x), 1)
	}
	return fmt.Sprintf("%#x", n)
}

// coq is a view's values, in the order of attr.
func (v *view) coq() string {
	return coqNumbers(slices.Delete(slices.Clone(v[:]), int(chosen), int(chosen)+1))
}

func coqNumbers(list []number) string { return strings.ReplaceAll(fmt.Sprint(list), " ", "; ") }
func coqList(list []string) string    { return "[" + strings.Join(list, "; ") + "]" }
