// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
)

// Sentence is one part of the invariant: it excludes some states of a CPU and a site at some
// places of the plan.
type Sentence struct {
	Name, Text string
	never      [][]test // each of them excludes all views in which all of its tests hold
	// Used are the properties whose obligation takes this sentence; see Explain.
	Used []string
}

// Explain says in sentences why nothing breaks. Each sentence holds of every view. A solver
// then leaves the views out, and says from which of the sentences each property follows; where
// it is nil nothing is said of that.
func (p *Proof) Explain(ctx context.Context, s *Solver) (*Outline, error) {
	c := p.closure
	_, broken := c.allSteps()
	o := &Outline{Steps: c.outline(), Sentences: []Sentence{c.sets()}}
	for _, x := range c.candidates(broken) {
		x.never = slices.DeleteFunc(x.never, func(all []test) bool {
			return slices.ContainsFunc(all, func(t test) bool { return t.in == values{} })
		})
		if len(x.never) > 0 && !slices.ContainsFunc(c.views, x.denies) {
			o.Sentences = append(o.Sentences, x)
		}
	}
	if s == nil {
		return o, nil
	}
	w := newWriter(c, ground, cubesOf(c.views))
	for _, n := range broken {
		if len(n.branches) == 0 {
			continue
		}
		if slices.ContainsFunc(n.branches, readsWindow) {
			o.Sentences[0].Used = append(o.Sentences[0].Used, n.name)
		}
		core, err := s.core(ctx, w.fromSentences(o.Sentences, n))
		switch {
		case err != nil:
			return nil, err
		case core == nil:
			o.Whole = append(o.Whole, n.name)
		}
		for _, name := range core {
			if name == together {
				continue
			}
			i := slices.IndexFunc(o.Sentences, func(x Sentence) bool { return x.Name == name })
			o.Sentences[i].Used = append(o.Sentences[i].Used, n.name)
		}
	}
	return o, nil
}

// readsWindow tells whether a step depends on the texts that can be fetched: its obligation has only the
// sets of texts that the first sentence names.
func readsWindow(b branch) bool {
	return slices.ContainsFunc(b.when, func(c cond) bool { return c.any[0].attr == window })
}

// denies tells whether a sentence excludes a view.
func (x *Sentence) denies(v view) bool {
	return slices.ContainsFunc(x.never, func(all []test) bool { return allHold(all, &v) })
}

// fromSentences asks whether a step breaks a property where nothing is known but the sentences.
func (w *writer) fromSentences(list []Sentence, n named) string {
	var b strings.Builder
	b.WriteString("(set-option :produce-unsat-cores true)\n" + w.head)
	for _, x := range list {
		all := w.everyPair(func(c, s string) string {
			not := []string{fmt.Sprintf("(not (= %s noWindow))", term(window, "", c, s))}
			if x.Name != together {
				not = nil
			}
			for _, tests := range x.never {
				is := spelling.Each(tests, func(t test) string { return w.is(t.attr, term(t.attr, "", c, s), t.in) })
				not = append(not, "(not "+conj(is)+")")
			}
			return conj(not)
		})
		fmt.Fprintf(&b, "(assert (! %s :named %s))\n", all, x.Name)
	}
	o := w.never(cpus.Property(n.name), n.branches)
	return b.String() + o.goal + "(check-sat)\n(get-unsat-core)\n"
}

// candidates are sentences that may hold: those about an update at its places hold by the way in
// which they are made.
func (c *closure) candidates(broken []named) (list []Sentence) {
	enabling, undoing := c.program.starts[0].at, c.program.starts[2].at
	nowhere := Sentence{Name: "texts"}
	var has []string
	for t := range c.texts.list {
		if is := (test{text, only(number(t))}); !slices.ContainsFunc(c.views, func(v view) bool { return is.holds(&v) }) {
			nowhere.never = append(nowhere.never, []test{is})
			continue
		}
		has = append(has, c.nameOf(number(t)))
		for _, is := range []test{{window, c.fetching(number(t))}, {text, only(number(t))}} {
			list = append(list, c.phases(number(t), is, "enabled", enabling, undoing),
				c.phases(number(t), is, "disabled", undoing, len(c.program.items)))
		}
	}
	nowhere.Text = fmt.Sprintf("A site has only these: %s.", strings.Join(has, ", "))
	list = append(list, nowhere, c.parts(), c.fetchedOffTurn(), c.current(), c.pushedOut(),
		Sentence{Name: "one-promise", Text: "Promises about a site are about the text that is there, not about one to come.",
			never: [][]test{{{settled, only(settledToCome)}}}},
		Sentence{Name: "batch-there", Text: "While a handler holds a reference, a batch is published.",
			never: [][]test{{{published, only(0)}, {does, c.holding()}}}})
	return append(list, c.ofCPUs(broken)...)
}

// within are the places of items.
func (c *closure) within(is func(item int) bool) values {
	return c.places.where(func(s *spot) bool { return is(int(s.item)) })
}

// turn are the roles of a site whose turn it is at an item of an update: its batch is to come, is
// under way, or is over.
func (c *closure) turn(item int) values {
	it := c.program.items[item]
	if it.kind == atRest || it.kind == atChoice {
		return values{}
	}
	roles := only(later)
	for i := item; i >= 0 && c.program.items[i].undo == it.undo; i-- {
		switch k := c.program.items[i].kind; {
		case k == leaveBatch && i < item:
			return only(through)
		case k == enterBatch && i < item:
			roles = only(inBatch, current, passed)
		}
	}
	return roles
}

// fetching are the windows that have a text.
func (c *closure) fetching(t number) values {
	return c.windows.where(func(w *versions) bool { return slices.Contains(w.list[:w.n], t) })
}

// phases says from where to where in an update a site has a text, or some CPU can fetch it.
func (c *closure) phases(t number, is test, update string, from, to int) Sentence {
	what := "a site has " + c.nameOf(t)
	if is.attr == window {
		what = "CPUs can fetch " + c.nameOf(t)
	}
	x := Sentence{Name: fmt.Sprintf("%s-%s-%s", is.attr, slug(c.nameOf(t)), update)}
	type moment struct { // of a site whose turn it is
		item       int
		role, done number
	}
	can, at := map[moment]bool{}, map[int]bool{}
	for _, v := range c.views {
		if i := int(c.places.list[v[place]].item); is.holds(&v) && c.turn(i).has(v[role]) {
			can[moment{i, v[role], v[done]}], at[i] = true, true
		}
	}
	var spans []string
	for i := from; i < to; i++ {
		here := c.within(func(k int) bool { return k == i })
		for _, r := range c.turn(i).list(int(numRoles)) {
			for d := range number(siteDone + 1) {
				if !can[moment{i, r, d}] {
					x.never = append(x.never, []test{{place, here}, {role, only(r)}, {done, only(d)}, is})
				}
			}
		}
		switch {
		case !at[i]:
		case i > from && at[i-1]:
			first, _, _ := strings.Cut(spans[len(spans)-1], " to ")
			spans[len(spans)-1] = first + " to " + c.step(i)
		default:
			spans = append(spans, c.step(i))
		}
	}
	x.Text = fmt.Sprintf("While sites are %s, %s from %s, and nowhere else.", update, what, strings.Join(spans, ", and from "))
	if len(spans) == 0 {
		x.Text = fmt.Sprintf("While sites are %s, it is at no step that %s.", update, what)
	}
	return x
}

// step names an item.
func (c *closure) step(i int) string {
	return strings.TrimPrefix(c.spell(spot{item: uint16(i)}), "patcher: ")
}

// nameOf is a text in words.
func (c *closure) nameOf(t number) string {
	switch is := c.texts.list[t]; is {
	case c.site().Old:
		return "the old text"
	case c.site().New:
		return "the new text"
	default:
		return is.Format(c.code.Len)
	}
}

// parts says which part a site can have in an update at each place.
func (c *closure) parts() Sentence {
	x := Sentence{Name: "parts", Text: "A site's batch is to come, under way or over as the patcher's place has it."}
	has := map[number]values{}
	for _, v := range c.views {
		has[v[role]] = has[v[role]].union(only(v[place]))
	}
	for r := range numRoles {
		if not := without(has[r], len(c.places.list)); not != (values{}) {
			x.never = append(x.never, []test{{role, only(r)}, {place, not}})
		}
	}
	return x
}

// fetchedOffTurn tells the texts that CPUs can fetch of sites whose turn it is not.
func (c *closure) fetchedOffTurn() Sentence {
	var can []string
	x := Sentence{Name: "fetch-off-turn"}
	for t := range c.texts.list {
		in, seen := c.fetching(number(t)), false
		for _, v := range c.views {
			seen = seen || in.has(v[window]) && !c.turn(int(c.places.list[v[place]].item)).has(v[role])
		}
		if seen {
			can = append(can, c.nameOf(number(t)))
			continue
		}
		for r := range numRoles {
			x.never = append(x.never, []test{{role, only(r)}, {window, in},
				{place, c.within(func(i int) bool { return !c.turn(i).has(r) })}})
		}
	}
	x.Text = fmt.Sprintf("At a site whose turn it is not, CPUs can fetch only %s.", strings.Join(can, " and "))
	return x
}

// pushedOut says where in its program the patcher's stores wait.
func (c *closure) pushedOut() Sentence {
	waits, empty := values{}, c.waits.index(stores{})
	for _, v := range c.views {
		if v[waiting] != empty {
			waits = waits.union(only(v[place]))
		}
	}
	var at []string
	for _, p := range waits.list(len(c.places.list)) {
		if name := c.step(int(c.places.list[p].item)); !slices.Contains(at, name) {
			at = append(at, name)
		}
	}
	x := Sentence{Name: "pushed-out", Text: "No store waits in the patcher's buffer but at " + strings.Join(at, ", ") + "."}
	if len(at) == 0 {
		x.Text = "No store waits in the patcher's buffer."
	}
	x.never = [][]test{{{place, without(waits, len(c.places.list))}, {waiting, without(only(empty), len(c.waits.list))}}}
	return x
}

// together is the sentence that the sets of texts are which files name: in SMT-LIB, that none is
// noWindow.
const together = "together"

// sets are the texts that a CPU can fetch at one time.
func (c *closure) sets() Sentence {
	var list []string
	for i, w := range c.windows.list {
		if w.n > 1 {
			list = append(list, c.value(window, number(i)))
		}
	}
	return Sentence{Name: together, Text: "A CPU can fetch one text of a site, or at one time: " + strings.Join(list, ", ") + "."}
}

// current says that CPUs can fetch the text that is there, and no other text once an update
// has promised so.
func (c *closure) current() Sentence {
	x := Sentence{Name: "promised", Text: "CPUs can fetch the text that is there, and no other once an update has promised so."}
	for t := range c.texts.list {
		others := without(c.fetching(number(t)), len(c.windows.list))
		just := c.windows.where(func(w *versions) bool { return w.n > 1 && slices.Contains(w.list[:w.n], number(t)) })
		x.never = append(x.never, []test{{text, only(number(t))}, {window, others}},
			[]test{{text, only(number(t))}, {settled, only(settledNow)}, {window, just}})
	}
	return x
}

// ofCPUs are sentences about what CPUs do.
func (c *closure) ofCPUs(broken []named) (list []Sentence) {
	reached, far := c.has(does), map[string]values{}
	for _, n := range broken {
		for _, b := range n.branches {
			if t := b.when[0].any[0]; t.attr == does && !reached.has(t.in.list(maxValues)[0]) {
				far[b.name] = far[b.name].union(t.in)
			}
		}
	}
	for name, ds := range far {
		name = strings.TrimPrefix(name, "cpu ")
		list = append(list, Sentence{Name: "never-" + slug(name), Text: "No CPU comes to where it " + name + ".",
			never: [][]test{{{does, ds}}}})
	}
	slices.SortFunc(list, func(a, b Sentence) int { return strings.Compare(a.Name, b.Name) })
	asks, publishes := values{}, values{}
	for _, n := range broken {
		for _, b := range n.branches {
			switch n.name {
			case string(cpus.Conservation):
				asks = asks.union(b.when[0].any[0].in)
			case string(countOverwritten):
				publishes = publishes.union(b.when[0].any[0].in)
			}
		}
	}
	return append(list, c.loaded("released", "No CPU is about to call an ops that is released.", cpus.CalledFreed),
		c.loaded("whole-pointers", "No CPU has loaded half of a pointer.", cpus.CalledWild),
		Sentence{Name: "answered", Text: "When the patcher asks CPUs for something, each of them has answered what it was asked before.",
			never: [][]test{{{place, asks}, {asked, without(only(askedNothing), int(numAsked))}}}},
		Sentence{Name: "no-handler-left", Text: "When a batch is published, no handler holds a reference on the one before.",
			never: [][]test{{{place, publishes}, {does, c.holding()}}}})
}

// loaded says that no CPU has loaded an ops that a call through comes to that.
func (c *closure) loaded(name, text string, to cpus.Outcome) Sentence {
	x := Sentence{Name: name, Text: text}
	for i, states := range c.ops.list {
		for d, is := range c.cpus.list {
			if (is.Phase == cpus.Calling || is.Back == cpus.Calling) && c.table.Call(states, is.Ops) == to {
				x.never = append(x.never, []test{{opsStates, only(number(i))}, {does, only(number(d))}})
			}
		}
	}
	return x
}
