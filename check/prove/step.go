// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/poke"
)

// countOverwritten is broken when a batch is published while a handler still holds a
// reference: setting the count anew forgets the handler.
const countOverwritten cpus.Property = "count-overwritten"

// next is the place behind a spot.
func (m *machine) next(s spot) number { return m.places.index(s.to(int(s.item) + 1)) }

// at begins a branch of the patcher's at a place.
func (m *machine) atPlace(p number) branch {
	s := m.places.list[p]
	b := branch{name: m.spell(s), when: []cond{{own, []test{{place, only(p)}}}}}
	if m.code.Path.NMIs {
		b.when = append(b.when, m.noneAtHome())
	}
	return b
}

// spell names what is done at a spot.
func (m *machine) spell(s spot) string {
	it := m.program.items[s.item]
	name := "patcher: " + kindNames[it.kind]
	if it.kind == atStep {
		name = "patcher: " + m.program.plans.own[it.at].Name()
	}
	if it.undo {
		name += " back"
	}
	return name
}

// stepsOfPatcher are what the patcher's next step at a place can amount to.
func (m *machine) stepsOfPatcher(p number, of *view) []branch {
	s := m.places.list[p]
	it := m.program.items[s.item]
	b := m.atPlace(p)
	goOn := func(b branch, to number, then ...update) branch {
		b.when, b.then = slices.Clone(b.when), append([]update{{attr: place, to: to}}, then...)
		return b
	}
	picked := test{chosen, only(1)}
	switch it.kind {
	case atRest:
		return m.sit(b, s, goOn)
	case atChoice:
		return m.choose(b, s, goOn)
	case enterBatch:
		b.picks = true
		return []branch{goOn(b, m.next(s), update{attr: role, to: inBatch, ofSites: every,
			provided: []test{picked, {role, only(later)}}})}
	case leaveBatch:
		return m.repeated(s, goOn, only(inBatch), through, through, later)
	case leavePatch:
		return m.repeated(s, goOn, only(current, passed), passed, it.waits, it.waits)
	case ifLast:
		all := goOn(b, m.next(s))
		all.when = append(all.when, cond{every, []test{{enabled, only(0)}}})
		other := int(s.item) + 1
		for m.program.items[other].kind != finish {
			other++
		}
		return []branch{all, goOn(b, m.places.index(s.to(other+1)))}
	case enterPatch:
		b.onSite = true
		b = goOn(b, m.next(s), update{attr: role, to: current})
		b.when = append(b.when, cond{own, []test{{role, only(it.waits)}}})
		return []branch{b}
	case finish:
		return append(m.left(b, it), goOn(b, m.places.index(s.to(1)), update{attr: role, to: out, ofSites: every}))
	}
	switch st := &m.program.plans.own[it.at]; st.Op {
	case poke.Lock:
		if s.beside && st.Mutex == poke.TextMutex {
			return nil
		}
	case poke.Verify, poke.Write, poke.Settle:
		b.onSite = true
		covers := it.level.covers()
		on := goOn(b, m.next(s), update{attr: done, to: 0, ofSites: every})
		on.onSite = false
		on.when = append(on.when, cond{every, []test{{role, without(covers, int(numRoles))}, {done, only(siteDone)}}})
		b.when = append(b.when, cond{own, []test{{role, covers}}})
		if it.strays {
			stray := b
			stray.broken, stray.why = cpus.WrongPage, "no page, or another site's, is mapped meanwhile"
			return []branch{stray, on}
		}
		return append(m.stepAtSite(b, it, of), on)
	}
	return m.stepForAll(b, s, it)
}

// repeated is the end of a loop over sites: another turn, if sites are left, or on. done are the
// roles of the sites that are through; next is their role in another turn, behind is their role
// after the last; rest is the role of the other sites.
func (m *machine) repeated(s spot, goOn func(branch, number, ...update) branch, done values,
	next, behind, rest number) []branch {
	b := m.atPlace(m.places.index(s))
	becomes := func(is number) update {
		return update{attr: role, to: is, ofSites: every, provided: []test{{role, done}}}
	}
	again := goOn(b, m.places.index(s.to(m.program.items[s.item].back)), becomes(next))
	on := goOn(b, m.next(s), becomes(behind))
	on.when = append(on.when, cond{every, []test{{role, without(only(rest), int(numRoles))}}})
	return []branch{again, on}
}

// sit takes a CPU over that stands between two calls.
func (m *machine) sit(b branch, s spot, goOn func(branch, number, ...update) branch) []branch {
	idle := m.cpus.where(func(c *cpus.CPU) bool {
		return c.Houses() && c.Role.RunsPatcher()
	})
	b.onCPU = true
	b = goOn(b, m.places.index(s.to(1)), update{attr: home, to: 1})
	b.when = append(b.when, cond{own, []test{{does, idle}}})
	return []branch{b}
}

// choose begins an update of any sites, or goes.
func (m *machine) choose(b branch, s spot, goOn func(branch, number, ...update) branch) []branch {
	all := []branch{goOn(b, m.places.index(s.to(0)), update{attr: home, to: 0, ofCPUs: every})}
	for _, start := range m.program.starts {
		was, is := number(0), number(1)
		if start.undo {
			was, is = 1, 0
		}
		who := []test{{chosen, only(1)}, {enabled, only(was)}}
		u := goOn(b, m.places.index(s.to(start.at)),
			update{attr: role, to: later, ofSites: every, provided: who},
			update{attr: enabled, to: is, ofSites: every, provided: who})
		u.picks = true
		switch {
		case start.attaches: // only where no site is enabled
			u.when = append(u.when, cond{every, []test{{enabled, only(0)}}})
		case !start.undo:
			tracer := m.ops.where(func(states *cpus.OpsStates) bool {
				return m.table.Call(*states, m.site().NewOps) == cpus.CalledTracer
			})
			u.when = append(u.when, cond{own, []test{{opsStates, tracer}}})
		}
		all = append(all, u)
	}
	return all
}

// left is what an update must not leave at its sites. All of them are through by then, and a
// literal that waits makes no difference, since it can become visible before anything else
// happens: to say so here would change nothing. Nor does it make a difference that updates
// that lead back are looked at: they write the same parts, and leave wrong what the others do.
func (m *machine) left(b branch, it item) []branch {
	want := m.site().New
	if it.undo {
		want = m.site().Old
	}
	wrong := without(only(m.texts.index(want)), len(m.texts.list))
	arrived := m.waits.where(func(w *stores) bool { return w.text == 0 })
	b.onSite, b.broken, b.why = true, cpus.BrokenSite, "the update is over and left this instead of "+want.Format(
		m.code.Len,
	)
	b.when = append(slices.Clone(b.when), cond{own, []test{{role, ofUpdate.covers()}}},
		cond{own, []test{{text, wrong}}}, cond{own, []test{{waiting, arrived}}})
	return []branch{b}
}

// patcher is one at an item, with stores that wait.
func (m *machine) patcher(plan []poke.Step, at int, stage uint8, waits ...poke.StoreID) *poke.Patcher {
	p := &poke.Patcher{Code: m.code, Patches: m.patches, Plan: plan}
	p.Resume(poke.Progress{At: at, Stage: stage, Buffered: waits})
	return p
}

// stepAtSite is what a step that is made site by site does at one.
func (m *machine) stepAtSite(b branch, it item, of *view) (all []branch) {
	c := &cell{m: m, of: of, level: it.level}
	for more := true; more; more = c.Next() {
		c.begin(b)
		c.b.when = slices.Clone(b.when)
		stage := c.read(done)
		if stage == siteDone {
			continue
		}
		waits := c.m.waits.list[c.read(waiting)]
		p := m.patcher(m.program.plans.own, it.at, uint8(stage), m.buffered(waits)...)
		if _, err := p.Step(context.Background(), c, c); err != nil {
			c.b.broken, c.b.why = cpus.BrokenSite, "the patcher does not find what it expects: "+err.Error()
			all = append(all, c.b)
			continue
		}
		at, _, made := p.Place()
		if at != it.at {
			made = siteDone
		}
		c.write(done, number(made))
		if now := m.waitsOf(p); now != waits {
			c.write(waiting, m.waits.index(now))
		}
		all = append(all, c.end())
	}
	return all
}

// stepForAll is what a step does that is about all sites at once.
func (m *machine) stepForAll(b branch, s spot, it item) (all []branch) {
	c := &cell{m: m, level: it.level}
	for more := true; more; more = c.Next() {
		c.begin(b)
		c.b.when = slices.Clone(b.when)
		if m.orders(it, s.stage) {
			c.needs(every, test{waiting, only(m.waits.index(stores{}))})
		}
		p := m.patcher(m.program.plans.own, it.at, s.stage)
		_, _ = p.Step(context.Background(), c, atOnce{c}) // only steps at a site fail
		at, _, stage := p.Place()
		to := s
		if to.stage = stage; at != it.at {
			to = s.to(int(s.item) + 1)
		}
		c.write(place, m.places.index(to))
		all = append(all, c.end())
		all = append(all, m.violations(b, it, s.stage)...)
	}
	return all
}

// atOnce chooses as the cell does, and lets no store wait: see fenced.
type atOnce struct{ *cell }

func (c atOnce) Choose(what cpus.Choice, n int) int {
	if what == cpus.ChooseDrain {
		return n - 1
	}
	return c.cell.Choose(what, n)
}

// orders tells whether a step waits for stores that are not visible yet: a store to
// another site that waits then keeps it from going on.
func (m *machine) orders(it item, stage uint8) bool {
	if len(m.stores) == 0 {
		return false
	}
	other := m.stores[0]
	other.Patch = 1
	p := m.patcher(m.program.plans.other, it.at, stage, other)
	c := &cell{m: m, of: &m.first, level: it.level}
	_, _ = p.Step(context.Background(), c, c)
	return p.Waiting() == 0
}

// violations is what a step about all sites must not find.
func (m *machine) violations(b branch, it item, stage uint8) (all []branch) {
	st := m.program.plans.own[it.at]
	bad := func(p cpus.Property, why string, when ...cond) {
		b := b
		b.broken, b.why, b.when = p, why, append(slices.Clone(b.when), when...)
		all = append(all, b)
	}
	switch {
	case stage > 0:
	case st.Op == poke.Unlock && st.Mutex == poke.TextMutex && m.several:
		why := "another patcher takes text_mutex, and would find a batch"
		bad(batchLeft, why, cond{own, []test{{published, only(1)}}})
		bad(batchLeft, why, cond{own, []test{{reference, only(1)}}})
	case st.Op == poke.Map:
		b.onSite = true
		text := m.waits.where(func(w *stores) bool { return w.text != 0 })
		bad(cpus.WrongPage, "a store to a site before waits in a buffer, and another page is mapped meanwhile",
			cond{own, []test{{role, without(only(current), int(numRoles))}}}, cond{own, []test{{waiting, text}}})
	case st.Op == poke.Publish && m.overfull:
		if v := m.rules.Overflows(0, slices.Repeat(m.patches[:1], m.rules.Slots+1)); v != nil {
			bad(v.Property, v.Why)
		}
	case st.Op == poke.Sync, st.Op == poke.GracePeriod, st.Op == poke.SynchronizeRCU, st.Op == poke.StopMachine:
		var busy values
		for x := askedSync; x < numAsked; x++ {
			busy = busy.union(only(x))
		}
		bad(cpus.Conservation, "a CPU still owes the answer to an earlier request", cond{some, []test{{asked, busy}}})
	}
	if st.Op == poke.Publish && m.refs != int3.NoRef {
		bad(countOverwritten, "a handler holds a reference, and publishing sets the count anew",
			cond{some, []test{{does, m.holding()}}})
	}
	return all
}

// buffered are stores as a patcher has them.
func (m *machine) buffered(w stores) (ids []poke.StoreID) {
	for _, n := range []number{w.text, w.literal} {
		if n > 0 {
			ids = append(ids, m.stores[n-1])
		}
	}
	return ids
}

// waitsOf is the other way round: equal stores count as one.
func (m *machine) waitsOf(p *poke.Patcher) (w stores) {
	for _, id := range p.Progress(nil).Buffered {
		is := storeOf(p, id)
		n := number(1 + slices.IndexFunc(m.stores, func(s poke.StoreID) bool { return storeOf(p, s) == is }))
		if is.code {
			w.text = n
		} else {
			w.literal = n
		}
	}
	return w
}

type storeValue struct {
	off, n int
	text   any
	code   bool
}

func storeOf(p *poke.Patcher, id poke.StoreID) storeValue {
	_, off, n, t, code := p.StoreAt(id)
	return storeValue{off, n, t, code}
}

// drains are the stores that become visible by themselves.
func (m *machine) drains(of *view) (all []branch) {
	c := &cell{m: m, of: of}
	for more := true; more; more = c.Next() {
		c.begin(branch{name: "a store becomes visible", onSite: true})
		waits := m.waits.list[c.read(waiting)]
		ids := m.buffered(waits)
		if len(ids) == 0 {
			continue
		}
		p := m.patcher(m.program.plans.own, 0, 0, ids...)
		p.Drain(c.Ask(len(ids)), c)
		c.write(waiting, m.waits.index(m.waitsOf(p)))
		all = append(all, c.end())
	}
	return all
}

// size is how many values an attribute has had so far.
func (m *machine) size(a attr) int {
	return attrs[a].size + [numAttrs]int{
		place: len(m.places.list), opsStates: len(m.ops.list), text: len(m.texts.list), literal: len(m.literals.list),
		waiting: len(m.waits.list), does: len(m.cpus.list), window: len(m.windows.list),
	}[a]
}

// slug is a name for a file.
func slug(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
