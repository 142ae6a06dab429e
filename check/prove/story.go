// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/internal/spelling"
)

// way is how a view came about: the views before it, the first one first.
func (c *closure) way(i int) (list []int) {
	for ; i >= 0; i = c.from[i] {
		list = append(list, i)
	}
	slices.Reverse(list)
	return list
}

// Story is the shortest way through views to a broken property: each step, with the
// attributes of the view that it changes.
func (c *closure) story(b broken) string {
	var out strings.Builder
	var before view
	for n, i := range c.way(b.at) {
		v := c.views[i]
		var now []string
		for a := range numAttrs {
			if n == 0 || v[a] != before[a] {
				now = append(now, fmt.Sprintf("%s %s", a, c.value(a, v[a])))
			}
		}
		before = v
		fmt.Fprintf(&out, "%3d %-40s %s\n", n, c.by[i], strings.Join(now, ", "))
	}
	fmt.Fprintf(&out, "    %-40s %s: %s\n", b.step, b.property, b.why)
	return out.String()
}

// value says what a value of an attribute means.
func (m *machine) value(a attr, x number) string {
	names := map[attr][]string{
		role:    {"none", "later", "in the batch", "current", "passed", "through"},
		settled: {"no", "newest", "to come"}, entry: {"none", "new", "old"}, done: {"no", "half", "yes"},
		asked: {"nothing", "sync", "stop", "grace period", "RCU grace period", "taken"},
		stand: {"no", "to", "stands"}, space: {"kernel", "user", "2", "user, left out"},
	}
	switch a {
	case place:
		s := m.places.list[x]
		return fmt.Sprintf("%d.%d %s", s.item, s.stage, m.spell(s))
	case opsStates:
		return fmt.Sprintf("%b", m.ops.list[x])
	case text:
		return m.texts.list[x].Format(m.code.Len)
	case literal:
		return fmt.Sprintf("%#x", m.literals.list[x])
	case waiting:
		return fmt.Sprint(m.waits.list[x])
	case does:
		return m.doing(x)
	case window:
		w := m.windows.list[x]
		list := spelling.Each(w.list[:w.n], func(t number) string { return m.texts.list[t].Format(m.code.Len) })
		return "{" + strings.Join(list, ", ") + "}"
	}
	if list := names[a]; list != nil {
		return list[x]
	}
	return []string{"no", "yes"}[x]
}

// doing says what a CPU does.
func (m *machine) doing(d number) string {
	c := m.cpus.list[d]
	s := fmt.Sprintf("%s %s", c.Role, c.Phase)
	if c.Role == ofPreempted {
		s = "preempted task " + c.Phase.String()
	}
	if c.InInterrupt() {
		s += " (from " + c.Back.String() + ")"
	}
	if c.Owes() {
		s += " owes"
	}
	if c.Act.Kind != isa.Unknown {
		s += " " + c.Act.Kind.String()
	}
	if c.Ops != 0 {
		s += fmt.Sprintf(" ops %#x", c.Ops)
	}
	if c.Promise != 0 {
		s += fmt.Sprintf(" promise %d", c.Promise.Seq())
	}
	return s
}

// Step is a step of the patcher's, and what CPUs can fetch of a site whose turn it is meanwhile.
type Step struct {
	Undo  bool // in the update that leads back
	Name  string
	Fetch []string
}

// Outline is a proof in sentences.
type Outline struct {
	Steps     []Step
	Sentences []Sentence
	// Whole are the properties that do not follow from the sentences, but from all views.
	Whole []string
}

// outline are the steps of the program, without those that only lead on.
func (c *closure) outline() (list []Step) {
	for i, it := range c.program.items {
		if it.kind != atStep && it.kind != finish {
			continue
		}
		st := Step{Undo: it.undo, Name: c.step(i)}
		for t := range c.texts.list {
			if in := c.fetching(number(t)); slices.ContainsFunc(c.views, func(v view) bool {
				return int(c.places.list[v[place]].item) == i && in.has(v[window]) && c.turn(i).has(v[role])
			}) {
				st.Fetch = append(st.Fetch, c.nameOf(number(t)))
			}
		}
		list = append(list, st)
	}
	return list
}

// String is the outline for people.
func (o *Outline) String() string {
	var b strings.Builder
	for i, st := range o.Steps {
		if i == 0 || st.Undo != o.Steps[i-1].Undo {
			fmt.Fprintf(&b, "%-28s CPUs can fetch, of a site whose turn it is\n", map[bool]string{false: "To enable sites",
				true: "To disable sites"}[st.Undo])
		}
		fmt.Fprintf(&b, "  %-26s %s\n", st.Name, strings.Join(st.Fetch, "; "))
	}
	fmt.Fprintln(&b)
	for _, x := range o.Sentences {
		fmt.Fprintf(&b, "%s: %s\n", x.Name, x.Text)
		if len(x.Used) > 0 {
			fmt.Fprintf(&b, "    used for %s\n", strings.Join(x.Used, ", "))
		}
	}
	if len(o.Whole) > 0 {
		fmt.Fprintf(&b, "\nBy all views, and not by these sentences alone: %s\n", strings.Join(o.Whole, ", "))
	}
	return b.String()
}
