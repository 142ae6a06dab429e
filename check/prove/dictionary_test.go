// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/poke"
)

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
				s.line("(define-fun %s () %s %s)", val(a, number(x)), sortOf(a), list[x])
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
			if slices.Contains(w.list[:w.n], number(i)) {
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
	stop := reflect.ValueOf(c).FieldByName("stop").Bool()
	if phases[c.Phase] == "" || under == "" {
		s.t.Fatalf("no word for %v", c)
	}
	return fmt.Sprintf("(cpu %s %s %t %t %s %s %s)", phases[c.Phase], under, c.Quiet, stop, act, bits(c.Ops),
		promise)
}

// store is one of the machine's stores, 0 for none.
func (s *second) store(n number) string {
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
