// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"

	"github.com/textpoke/textpoke/cpus"
)

// scope says whose attribute is meant: the acting CPU's or site's own (and the
// patcher's, of which there is one), that of every one, or of some.
type scope uint8

const (
	own scope = iota
	every
	some
)

// test asks whether an attribute has one of some values.
type test struct {
	attr attr
	in   values
}

// cond is a condition: one of its tests holds.
type cond struct {
	who scope
	any []test
}

// change is how an attribute gets its new value.
type change uint8

const (
	set   change = iota // a value
	push                // of a window: a text more
	fresh               // of a window: what is there, and nothing else
	older               // of does: what was promised is so no more
)

// update is one effect of a step. All of a step's effects are of the state before it.
type update struct {
	attr     attr
	how      change
	to       number // the value, or the text that is pushed
	ofCPUs   scope  // own or every
	ofSites  scope
	provided []test // of the CPU or site that it is about: all must hold
}

// branch is one thing that a step can amount to: when, and what then.
type branch struct {
	name   string // of the step
	when   []cond
	then   []update
	broken cpus.Property
	why    string
	onCPU  bool // there is an acting CPU
	onSite bool // there is an acting site
	picks  bool // it goes by what is chosen
}

// holds tells whether a view has one of the values.
func (t test) holds(v *view) bool { return t.in.has(v[t.attr]) }

func anyHolds(tests []test, v *view) bool {
	for _, t := range tests {
		if t.holds(v) {
			return true
		}
	}
	return false
}

func allHold(tests []test, v *view) bool {
	for _, t := range tests {
		if !t.holds(v) {
			return false
		}
	}
	return true
}

// part is what a view is to a step: whether its CPU acts, and its site.
type part struct{ cpu, site bool }

// concerns tells whether an attribute of the acting CPU or site is the view's.
func (p part) concerns(a attr) bool {
	switch attrs[a].of {
	case ofSite:
		return p.site
	case ofCPU:
		return p.cpu
	case ofPair:
		return p.site && p.cpu
	}
	return true
}

// key tells branches apart that amount to something else, whatever they are called.
func (b *branch) key() string { return fmt.Sprint(b.when, b.then, b.broken) }
