// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"
	"strings"
)

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
