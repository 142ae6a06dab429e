// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The steps of CPUs and patchers stand a second time in testdata/relation, written by hand in
// SMT-LIB. A dictionary (below) says what the numbers of a certificate mean in the words of
// these files; nothing of a step comes from the program.

// state declares a state; after is "" or "-next".
func (s *second) state(after string) {
	for a := range numAttrs {
		s.line("(declare-fun %s%s (%s) %s)", a, after, params(a), secondSort(a))
	}
	s.line("(declare-fun at%s (Cpu) Site)", after)
}

// numbered are the attributes whose values are words, records and sets: a view goes by the
// numbers of those that the certificate knows, which solvers compare faster.
var numbered = []attr{opsStates, text, literal, waiting, does, window}

// secondSort is what an attribute is in the second relation.
func secondSort(a attr) string {
	if a == text || a == literal {
		return "Word"
	}
	return sortOf(a)
}

// numbers defines the number of a value; there is one for what the certificate does not know.
func (s *second) numbers() {
	for _, a := range numbered {
		names, expr := fmt.Sprintf("(no-%s)", a), fmt.Sprintf("no-%s", a)
		for x := range s.size[a] {
			names += fmt.Sprintf(" (n-%s%d)", a, x)
			expr = ite(fmt.Sprintf("(= x %s)", val(a, number(x))), fmt.Sprintf("n-%s%d", a, x), expr)
		}
		s.line("(declare-datatypes ((N-%s 0)) ((%s)))", a, names)
		s.line("(define-fun number-%s ((x %s)) N-%s %s)", a, secondSort(a), a, expr)
	}
}

// seenAs is an attribute as views have it.
func seenAs(a attr, term string) string {
	if slices.Contains(numbered, a) {
		return fmt.Sprintf("(number-%s %s)", a, term)
	}
	return term
}

// invariantOf defines the cases of a view.
func (s *second) invariantOf(name string, cubes []cube) {
	var args, cases []string
	for _, a := range state() {
		sort := secondSort(a)
		if slices.Contains(numbered, a) {
			sort = fmt.Sprintf("N-%s", a)
		}
		args = append(args, fmt.Sprintf("(%s_ %s)", a, sort))
	}
	for _, x := range cubes {
		var all []string
		for _, a := range state() {
			is := s.is(a, a.String()+"_", x[a])
			switch {
			case !slices.Contains(numbered, a):
			case is == "true":
				is = fmt.Sprintf("(not (= %s_ no-%s))", a, a)
			default:
				is = strings.ReplaceAll(is, fmt.Sprintf("_ %s", a), fmt.Sprintf("_ n-%s", a))
			}
			if is != "true" {
				all = append(all, is)
			}
		}
		cases = append(cases, conj(all))
	}
	s.line("(define-fun %s (%s) Bool (or\n %s))", name, strings.Join(args, " "), strings.Join(append(cases, "false"), "\n "))
}

// within says that the view of a CPU and a site is one of the certificate's.
func within(after, c, site string) string {
	var args []string
	for _, a := range state() {
		args = append(args, seenAs(a, term(a, after, c, site)))
	}
	all := strings.Join(args, " ")
	return fmt.Sprintf("(ite (= (at%s %s) %s) (V %s) (W %s))", after, c, site, all, all)
}

// file appends a hand-written file.
func (s *second) file(name string) {
	src, err := os.ReadFile(filepath.Join("testdata", "relation", name+".smt2"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.b.Write(src)
}

const actors = "(declare-const c0 Cpu)\n(declare-const s0 Site)\n(declare-const c1 Cpu)\n(declare-const s1 Site)\n" +
	"(declare-const c9 Cpu)\n"

var definitions = regexp.MustCompile(`(?m)^\(define-fun ((?:step|bad)-[a-z-]+) `)

// pairs are the CPUs and sites that a step is looked at of.
func pairs(say func(c, s string) string) (list []string) {
	for _, p := range [][2]string{{"c0", "s0"}, {"c0", "s1"}, {"c1", "s0"}, {"c1", "s1"}} {
		list = append(list, say(p[0], p[1]))
	}
	return list
}

// newSecond is the certificate of a protocol, for the second relation.
func newSecond(t testing.TB, arch string, p *Proof) *second {
	p.closure.allSteps() // which meet more values than views have
	return &second{writer: newWriter(p.closure, ground, cubesOf(p.closure.views)), t: t, b: &strings.Builder{}, arch: arch}
}

// proofs say that the second relation leads from views to views, and breaks nothing in them.
func (s *second) proofs() (list []Obligation) {
	s.file("words")
	s.dictionary()
	s.state("")
	s.state("-next")
	s.b.WriteString(actors)
	s.numbers()
	cubes := cubesOf(s.closure.views)
	s.invariantOf("V", cubes)
	s.invariantOf("W", s.elsewhereCubes(cubes))
	s.file(s.arch)
	s.file("machine")
	s.line("(assert %s)", conj(pairs(func(c, site string) string { return within("", c, site) })))
	head := s.b.String()
	for _, m := range definitions.FindAllStringSubmatch(head, -1) {
		o := Obligation{Name: m[1], head: head, goal: "(assert " + m[1] + ")\n"}
		if strings.HasPrefix(m[1], "step-") {
			o.guard = "(assert " + s.made(m[1]) + ")\n"
			o.goal = fmt.Sprintf("(assert (not %s))\n", within("-next", "c1", "s1"))
		}
		list = append(list, o)
	}
	return list
}

// made says that a step of the second relation is made, as all see it.
func (s *second) made(step string) string {
	return conj(pairs(func(c, site string) string { return fmt.Sprintf("(%s %s %s)", step, c, site) }))
}

// contained say that each of the program's steps is one of the second relation's.
func (s *second) contained() (list []Obligation) {
	s.file("words")
	s.dictionary()
	s.state("")
	s.b.WriteString(actors)
	s.numbers()
	s.tables(s.line)
	head := s.b.String()
	var after strings.Builder
	s.b = &after
	s.file(s.arch)
	s.witness()
	s.file("machine")
	hand := strings.NewReplacer("(declare-const refetches Bool)", "", "(declare-const f Word)", "").Replace(after.String())
	var ways []string
	for _, m := range definitions.FindAllStringSubmatch(hand, -1) {
		if strings.HasPrefix(m[1], "step-") {
			ways = append(ways, s.made(m[1]))
		}
	}
	steps, _ := s.allSteps()
	for _, st := range steps {
		outs := s.outcomes(st.branches)
		for i := range outs {
			var b strings.Builder
			b.WriteString(head)
			fmt.Fprintf(&b, "(define-fun refetches () Bool %t)\n", outs[i].onCPU && slices.ContainsFunc(outs[i].then,
				func(u update) bool { return u.how == fresh }))
			fmt.Fprintf(&b, "(assert %s)\n", conj(pairs(s.allKnown)))
			fmt.Fprintf(&b, "(assert %s)\n", s.guardOf(&outs[i]))
			for _, a := range state() {
				b.WriteString(strings.Replace(s.next(a, outs[i:i+1]), "(= b b0)", "true", -1))
			}
			at := "(at c)"
			if outs[i].onCPU && outs[i].onSite {
				at = "(ite (= c c0) s0 (at c))"
			}
			fmt.Fprintf(&b, "(define-fun at-next ((c Cpu)) Site %s)\n", at)
			// A window that the certificate does not know is in no view, whichever it is.
			fmt.Fprintf(&b, "(assert %s)\n", conj(pairs(func(c, site string) string {
				return fmt.Sprintf("(not (= (window-next %s %s) noWindow))", c, site)
			})))
			list = append(list, Obligation{Name: fmt.Sprintf("%s %d", st.name, i), head: wordSorts.Replace(b.String()) + hand,
				goal: fmt.Sprintf("(assert (not %s))\n", disj(ways))})
		}
	}
	return list
}

// wordSorts are what the certificate calls otherwise.
var wordSorts = strings.NewReplacer(" Text ", " Word ", " Text)", " Word)", " Literal ", " Word ", "(older ", "(table-older ",
	"fun older ", "fun table-older ")

func (s *second) allKnown(c, site string) string {
	var all []string
	for _, a := range state() {
		if slices.Contains(numbered, a) {
			all = append(all, fmt.Sprintf("(not (= no-%s %s))", a, seenAs(a, term(a, "", c, site))))
		}
	}
	return conj(all)
}

// witness is what a CPU has fetched, seen from what it does next: some breakpoint that it may
// fetch, or what is called, or what calls nobody.
func (s *second) witness() {
	some := "old-text"
	for x := range s.machine.texts.list {
		some = fmt.Sprintf("(ite (and (= (bvand text%d break-mask) break-text) (= ((_ extract %d %d) "+
			"(bvor (window c0 s0) (bit (text s0)))) #b1)) text%d %s)", x, x, x, x, some)
	}
	s.line("(define-fun f () Word (ite (= (phase (does-next c0)) trapped) %s "+
		"(ite (= (phase (does-next c0)) boundary) old-text new-text)))", some)
}

// TestSecondRelation: what was proved is proved of the steps that were written by hand, and
// every step of the program is one of these: with -both that of x86_64, with -long of all. Each of these can be made, but for those that
// the plan has no use for.
func TestSecondRelation(t *testing.T) {
	z3 := solver(t, "z3")
	for _, c := range []struct {
		arch, protocol string
		usual          bool
		unused         int // steps that the plan never makes
	}{
		{"x86_64", "native", true, 14}, {"arm64", "native", false, 13}, {"riscv64", "native", false, 11},
		{"arm64", "breakpoint", false, 9}, {"riscv64", "breakpoint", false, 9}, {"riscv64", "word", false, 11},
		{"x86_64", "stop-machine", false, 16},
	} {
		if !c.usual && !*long && !(*both && c.protocol == "native") {
			continue
		}
		p := closed(t, setup(t, c.arch, c.protocol, ""))
		proofs := newSecond(t, c.arch, p).proofs()
		lists := [][]Obligation{proofs}
		if *long || *both && c.usual {
			lists = append(lists, newSecond(t, c.arch, p).contained())
		}
		for i, list := range lists {
			open, err := z3.refute(t.Context(), list)
			if err != nil || len(open) > 0 {
				t.Errorf("%s %s, %s: %v, error %v", c.arch, c.protocol, []string{"proved", "contained"}[i], open, err)
			}
		}
		steps := slices.DeleteFunc(proofs, func(o Obligation) bool { return o.guard == "" })
		answers, err := z3.answers(t.Context(), steps, false)
		if err != nil {
			t.Fatal(err)
		}
		var never []string
		for i, a := range answers {
			if a != "sat" {
				never = append(never, steps[i].Name)
			}
		}
		if len(never) != c.unused {
			t.Errorf("%s %s: %d of %d steps are never made: %v; want %d", c.arch, c.protocol, len(never), len(steps), never,
				c.unused)
		}
	}
}

// TestSecondRelationRefuses: what a defect breaks the second relation breaks, too; and a
// proof without one in so many of its views is none.
func TestSecondRelationRefuses(t *testing.T) {
	z3 := solver(t, "z3")
	for mutation, want := range map[string]string{"drop-sync-1": "bad-fetch", "drop-sync-3": "bad-breakpoint",
		"no-grace-period": "bad-call", "late-publish": "bad-breakpoint", "early-release": "bad-breakpoint"} {
		if !*long && mutation != "drop-sync-1" {
			continue
		}
		p := closed(t, setup(t, "x86_64", "native", mutation))
		list := slices.DeleteFunc(newSecond(t, "x86_64", p).proofs(), func(o Obligation) bool { return o.guard != "" })
		open, err := z3.refute(t.Context(), list)
		if err != nil || !slices.ContainsFunc(open, func(o Open) bool { return o.Obligation == want && o.Answer == "sat" }) {
			t.Errorf("%s: %v, %v; want %s", mutation, open, err, want)
		}
	}
	p := closed(t, setup(t, "arm64", "native", ""))
	every := 1000
	if *long {
		every = 20
	}
	for i := every / 2; i < p.Views(); i += every {
		less := *p.closure
		less.views = slices.Delete(slices.Clone(less.views), i, i+1)
		open, err := z3.refute(t.Context(), newSecond(t, "arm64", &Proof{closure: &less}).proofs())
		if err != nil || !slices.ContainsFunc(open, func(o Open) bool { return o.Answer == "sat" }) {
			t.Errorf("without view %d of %d: %v, %v", i, p.Views(), open, err)
		}
	}
}
