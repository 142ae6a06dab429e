// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

// The steps of CPUs and patchers stand a second time in testdata/relation, written by hand in
// SMT-LIB. A dictionary (below) says what the numbers of a certificate mean in the words of
// these files; nothing of a step comes from the program.

// The hand-written names of values, in the order of the program's numbers.
var words = map[attr][]string{
	role:    {"none", "later", "in-batch", "current", "passed", "through"},
	done:    {"not-yet", "half", "complete"},
	settled: {"unsettled", "settled-now", "settled-to-come"},
	entry:   {"no-entry", "acts-new", "acts-old"},
	asked:   {"nothing", "sync", "stop", "grace", "grace-of-cpus", "taken"},
	stand:   {"runs", "to-stand", "stands"},
	space:   {"in-kernel", "in-user", "no-such-space", "in-user-left-out"},
}

var phases = map[cpus.Phase]string{
	cpus.Boundary: "boundary", cpus.Again: "again", cpus.Entered: "entered", cpus.Calling: "calling",
	cpus.Trapped: "trapped", cpus.Searching: "searching", cpus.Leaving: "leaving", cpus.Returning: "returning",
	cpus.Missed: "missed", cpus.Retrying: "retrying", cpus.Interrupted: "interrupted", cpus.Syncing: "syncing",
	cpus.Answering: "answering", cpus.Arriving: "arriving", cpus.Stopped: "stopped", cpus.Resuming: "resuming",
	cpus.Doubting: "doubting",
}

var ops2words = map[poke.Op]string{
	poke.Verify: "verify", poke.Publish: "publish", poke.Write: "write", poke.Fence: "fence", poke.Sync: "round",
	poke.StopMachine: "stop-machine", poke.Resume: "resume", poke.Unpublish: "unpublish",
	poke.WaitHandlers: "wait-handlers", poke.GracePeriod: "grace-period", poke.Settle: "settle", poke.Attach: "attach",
	poke.Release: "release",
}

var kinds2words = map[kind]string{
	atRest: "rest", atChoice: "choice", enterBatch: "enter-batch", leaveBatch: "leave-batch", enterPatch: "enter-patch",
	leavePatch: "leave-patch", ifLast: "if-last", finish: "finish",
}

var parts = map[poke.Part]string{
	poke.Breakpoint: "breakpoint", poke.Tail: "tail", poke.Head: "head", poke.Word: "word", poke.Literal: "literal-part",
	poke.LiteralLow: "literal-low", poke.LiteralHigh: "literal-high",
}

// second is a certificate in the words of the second relation.
type second struct {
	*writer
	t    testing.TB
	b    *strings.Builder
	arch string
}

func (s *second) line(format string, args ...any) { fmt.Fprintf(s.b, format+"\n", args...) }

func bits(x uint64) string { return fmt.Sprintf("#x%016x", x) }

// dictionary defines every value of the certificate, and what it means.
func (s *second) dictionary() {
	m := s.machine
	for a := range numAttrs {
		for x := range s.size[a] {
			if list := words[a]; list != nil {
				s.line("(define-fun %s () %s %s)", val(a, uint8(x)), sortOf(a), list[x])
			}
		}
	}
	for x, t := range m.texts.list {
		s.line("(define-fun text%d () Word %s)", x, bits(uint64(t)))
	}
	for x, l := range m.literals.list {
		s.line("(define-fun literal%d () Word %s)", x, bits(l))
	}
	outcomes := []string{cpus.CalledNobody: "reaches-nobody", cpus.CalledTracer: "reaches-tracer",
		cpus.CalledFreed: "reaches-freed", cpus.CalledWild: "reaches-wild"}
	for x, states := range m.ops.list {
		s.line("(define-fun ops%d () Ops (ops-are %s %s))", x, outcomes[m.table.Call(states, m.site().NewOps)],
			outcomes[m.table.Call(states, m.site().OldOps)])
	}
	for x, c := range m.cpus.list {
		s.line("(define-fun does%d () Does %s)", x, s.cpu(c))
	}
	n := len(m.texts.list)
	s.line("(define-sort Window () (_ BitVec %d))", n)
	for x, w := range m.windows.list[:s.size[window]] {
		set := make([]byte, n)
		for i := range set {
			set[n-1-i] = '0'
			if slices.Contains(w.list[:w.n], uint8(i)) {
				set[n-1-i] = '1'
			}
		}
		s.line("(define-fun window%d () Window #b%s)", x, set)
	}
	s.line("(define-fun noWindow () Window #b%s)", strings.Repeat("0", n))
	bit, agrees := "noWindow", []string{"false"}
	for x := range n {
		one := []byte(strings.Repeat("0", n))
		one[n-1-x] = '1'
		bit = fmt.Sprintf("(ite (= t text%d) #b%s %s)", x, one, bit)
		agrees = append(agrees, fmt.Sprintf("(and (= ((_ extract %d %d) w) #b1) (= (bvand f mask) (bvand text%d mask)))",
			x, x, x))
	}
	s.line("(define-fun bit ((t Word)) Window %s)", bit)
	s.line("; Some text in w has the same bits as f where the mask has ones.")
	s.line("(define-fun agrees ((w Window) (f Word) (mask Word)) Bool %s)", disj(agrees))
	for x, w := range m.waits.list {
		s.line("(define-fun waiting%d () Waiting (waits %s %s))", x, s.store(w.text), s.store(w.literal))
	}
	s.program()
	site := m.site()
	for _, c := range []struct {
		name string
		is   uint64
	}{{"site-at", uint64(site.Addr)}, {"old-text", uint64(site.Old)}, {"new-text", uint64(site.New)},
		{"nop-ops", m.nopOps}, {"old-ops", site.OldOps}, {"new-ops", site.NewOps}} {
		s.line("(define-fun %s () Word %s)", c.name, bits(c.is))
	}
}

// cpu is what a CPU does, as a record.
func (s *second) cpu(c cpus.CPU) string {
	under, promise, act := "boundary", "no-promise", "no-act"
	switch c.Phase {
	case cpus.Interrupted, cpus.Syncing, cpus.Answering:
		under = phases[c.Back]
	}
	switch c.Promise {
	case 0:
	case promisedOnce:
		promise = "promised-once"
	default:
		promise = "promised"
	}
	switch c.Act.Kind {
	case isa.Unknown:
	case isa.Call:
		act = "act-call"
	default:
		act = "act-nop"
	}
	is := func(field string) bool { return reflect.ValueOf(c).FieldByName(field).Bool() }
	if phases[c.Phase] == "" || under == "" {
		s.t.Fatalf("no word for %v", c)
	}
	return fmt.Sprintf("(cpu %s %s %t %t %s %s %s)", phases[c.Phase], under, is("quiet"), is("stop"), act, bits(c.Ops),
		promise)
}

// store is one of the machine's stores, 0 for none.
func (s *second) store(n uint8) string {
	if n == 0 {
		return "no-store"
	}
	p := s.patcher(s.machine.program.plans.own, 0, 0)
	_, off, length, put, _ := p.StoreAt(s.stores[n-1])
	mask := (uint64(1)<<(8*length) - 1) << (8 * off)
	if length == 8 {
		mask = ^uint64(0)
	}
	return fmt.Sprintf("(store %s %s)", bits(^mask), bits(uint64(put)<<(8*off)&mask))
}

// program is the plan as data: what is done at each place, about whom, and what follows.
func (s *second) program() {
	m := s.machine
	have := len(m.places.list)
	var names []string
	table := map[string][]string{}
	put := func(f string, x string) { table[f] = append(table[f], x) }
	at := func(sp spot) string {
		if i := slices.Index(m.places.list[:have], sp); i >= 0 {
			return fmt.Sprintf("place%d", i)
		}
		return "no-place"
	}
	for x, sp := range m.places.list[:have] {
		names = append(names, fmt.Sprintf("(place%d)", x))
		it := m.program.items[sp.item]
		op, part, back := kinds2words[it.kind], "no-part", spot{}
		switch it.kind {
		case atStep:
			st := m.program.plans.own[it.at]
			if op = ops2words[st.Op]; op == "" {
				s.t.Fatalf("no word for %s", st.Name())
			}
			if st.Op == poke.Write {
				part = parts[st.Part]
			}
			put("backwards", fmt.Sprint(st.Undo))
		case leaveBatch, leavePatch:
			back = spot{item: uint16(it.back)}
		case finish:
			back = spot{item: 1}
		case ifLast:
			for back.item = sp.item + 1; m.program.items[back.item].kind != finish; back.item++ {
			}
			back.item++
		}
		if it.kind != atStep {
			put("backwards", fmt.Sprint(it.undo))
		}
		put("op", op)
		put("part", part)
		put("level", []string{"of-update", "of-batch", "of-patch"}[it.level])
		put("goes-through", words[role][it.waits])
		put("stage", fmt.Sprint(sp.stage))
		put("after", at(spot{item: sp.item + 1}))
		put("later-in", at(spot{item: sp.item, stage: sp.stage + 1}))
		put("back-to", at(back))
	}
	s.line("(declare-datatypes ((Place 0)) (((no-place) %s)))", strings.Join(names, " "))
	sorts := map[string]string{"backwards": "Bool", "op": "Op", "part": "Part", "level": "Level", "goes-through": "Role",
		"stage": "Int", "after": "Place", "later-in": "Place", "back-to": "Place"}
	for _, f := range slices.Sorted(maps.Keys(table)) {
		list := table[f]
		expr := list[0]
		for x, is := range list {
			expr = ite(fmt.Sprintf("(= p place%d)", x), is, expr)
		}
		s.line("(define-fun %s ((p Place)) %s %s)", f, sorts[f], expr)
	}
	for i, name := range []string{"start-attaching", "start-enabling", "start-disabling"} {
		s.line("(define-fun %s () Place %s)", name, at(spot{item: uint16(m.program.starts[i].at)}))
	}
}

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
			expr = ite(fmt.Sprintf("(= x %s)", val(a, uint8(x))), fmt.Sprintf("n-%s%d", a, x), expr)
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
// every step of the program is one of these. Each of these can be made, but for those that
// the plan has no use for.
func TestSecondRelation(t *testing.T) {
	z3 := solver(t, "z3")
	for _, c := range []struct {
		arch, protocol string
		usual          bool
		unused         int // steps that the plan never makes
	}{
		{"x86_64", "native", true, 14}, {"arm64", "native", false, 13}, {"riscv64", "native", false, 11},
		{"arm64", "breakpoint", false, 8}, {"riscv64", "breakpoint", false, 8}, {"riscv64", "word", false, 11},
		{"x86_64", "stop-machine", false, 17},
	} {
		if !c.usual && !*long && !(*both && c.protocol == "native") {
			continue
		}
		p := closed(t, setup(t, c.arch, c.protocol, ""))
		proofs := newSecond(t, c.arch, p).proofs()
		lists := [][]Obligation{proofs}
		if *long || *both {
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
