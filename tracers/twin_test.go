// SPDX-License-Identifier: Apache-2.0

package tracers

import (
	"fmt"
	"slices"
	"strings"
)

// attached are the ops that the twin knows of.
func (p *play) attached() []*Ops {
	all := slices.Clone(p.clients)
	if p.single.has(OpsEnabled) {
		all = append(all, p.single)
	}
	return all
}

// checkStores holds what CPUs read against what there is.
func (p *play) checkStores(when string) {
	if there := slices.Collect(p.c.List()); !slices.Equal(p.list, there) {
		p.t.Fatalf("%s: the list has %d ops, stored are %d, or others", when, len(there), len(p.list))
	}
	if f, o := p.c.Global(); f != p.calls || o != p.passed {
		p.t.Fatalf("%s: ftrace_caller calls %v with %v, stored are %v and %v", when, f, o, p.calls, p.passed)
	}
	for _, o := range p.list {
		if h := p.traced[o]; !slices.Equal(h, o.Filter) {
			p.t.Fatalf("%s: %s traces %v, stored is %v", when, o.Name, o.Filter, h)
		}
	}
}

// check holds the core against the twin.
func (p *play) check() {
	total, inText := 0, 0
	for rec := range playRecords {
		var users []*Ops
		for _, o := range p.attached() {
			if len(o.Filter) == 0 || slices.Contains(o.Filter, rec) {
				users = append(users, o)
			}
		}
		total += len(users)
		inText += p.c.Flags(rec).Count()
		p.checkFlags(rec, users)
		p.checkText(rec, users)
		p.checkCalls(rec, users)
	}
	if total != inText {
		p.t.Fatalf("%d references, the ops have %d functions", inText, total)
	}
	n := 0
	for o := range p.c.List() {
		n++
		if o.alive != attached {
			p.t.Fatalf("ops %s is in the list and %d", o.Name, o.alive)
		}
	}
	if n != len(p.attached()) || n != p.c.Len() {
		p.t.Fatalf("%d ops in the list, %d attached", n, len(p.attached()))
	}
	if _, op := p.c.Global(); op != nil && op.alive == freed {
		p.t.Fatalf("function_trace_op is %s, which was freed", op.Name)
	}
}

func (p *play) checkFlags(rec int, users []*Ops) {
	f := p.c.Flags(rec)
	some := func(flag OpsFlags) bool { return slices.ContainsFunc(users, func(o *Ops) bool { return o.has(flag) }) }
	one := len(users) == 1
	if !f.has(Regs) {
		delete(p.stale, rec)
	}
	regs := some(OpsSaveRegs)
	bad := f.Count() != len(users) || f.has(Direct) != some(OpsDirect) || f.has(IPModify) != some(OpsIPModify) ||
		f.has(Tramp) != (one && users[0].Trampoline != 0) || regs && !f.has(Regs) || !regs && f.has(Regs) &&
		!p.stale[rec] ||
		f.has(CallOps) && (!one || !p.c.traits.CallOps) || f.has(Enabled) != (len(users) > 0 && !p.c.off)
	if d, _ := Decide(f, !p.c.off); bad || d != Ignore {
		p.t.Fatalf("record %d: flags %s (%s) with %d users, direct %v, ipmodify %v", rec, f, d, len(users),
			some(OpsDirect), some(OpsIPModify))
	}
}

// checkText: replaying the passes gives what is there, and that is what the flags
// say.
func (p *play) checkText(rec int, users []*Ops) {
	f, now := p.c.Flags(rec), p.c.Text(rec)
	if p.text[rec] != now {
		p.t.Fatalf("record %d: replayed %s, there is %s", rec, p.text[rec], now)
	}
	if !f.has(Enabled) {
		if now != p.c.nop(rec) {
			p.t.Fatalf("record %d: %s though not enabled", rec, now)
		}
		return
	}
	want := p.c.Places.Entry
	switch {
	case f.has(DirectEn):
		want = p.direct[rec]
	case f.has(TrampEn):
		want = users[0].Trampoline
	case f.has(RegsEn):
		want = p.c.Places.RegsEntry
	}
	if now.Decided != want {
		p.t.Fatalf("record %d: %s, flags %s say %s", rec, now, f, want)
	}
	if !p.c.traits.CallOps {
		return
	}
	literal := p.c.ListOps
	if f.has(CallOpsEn) {
		literal = users[0]
	}
	if now.Literal != literal {
		p.t.Fatalf("record %d: literal %s, flags %s say %s", rec, now.Literal.Name, f, literal.Name)
	}
}

// checkCalls: a call reaches everybody who is attached, and nobody else.
func (p *play) checkCalls(rec int, users []*Ops) {
	called, err := p.c.Call(rec)
	if err != nil {
		p.t.Fatalf("record %d: %v", rec, err)
	}
	var got, want []string
	for _, k := range called {
		if k.Direct != 0 {
			got = append(got, k.Direct.String())
		} else {
			got = append(got, fmt.Sprintf("%s %p", k.Ops.Name, k.Ops))
		}
	}
	for _, o := range users {
		switch {
		case p.c.off || o.has(OpsStub):
		case o.has(OpsDirect):
			want = append(want, p.direct[rec].String())
		default:
			want = append(want, fmt.Sprintf("%s %p", o.Name, o))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		p.t.Fatalf("record %d (%s, %s) calls %v, attached are %v", rec, p.c.Flags(rec), p.c.Text(rec), got, want)
	}
}

// snapshot is everything that a change might have left behind.
func (p *play) snapshot() string {
	var b strings.Builder
	c := p.c
	for rec := range playRecords {
		fmt.Fprintf(&b, "%d: %s, %v, direct %s:", rec, c.flags[rec], c.text[rec], c.direct[rec])
		for _, u := range c.users[rec] {
			fmt.Fprintf(&b, " %p", u)
		}
		b.WriteByte('\n')
	}
	for o := range c.List() {
		fmt.Fprintf(&b, "list %p\n", o)
	}
	for _, o := range append(slices.Clone(p.clients), p.single, c.tmp) {
		fmt.Fprintf(&b, "%s %p: %s func %p tramp %s direct %s filter %v alive %d\n", o.Name, o, o.Flags,
			o.Func, o.Trampoline, o.DirectCall, o.Filter, o.alive)
	}
	fmt.Fprintf(&b, "%+v off %v dead %v leaving %d removed %v modifying %v", c.global, c.off, c.dead, len(c.leaving),
		c.removed, c.modifying)
	return b.String()
}
