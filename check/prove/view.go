// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// attr is one thing that a view says.
type attr uint8

// The attributes: of the patcher, of a site, of a CPU, and of the two together.
const (
	place     attr = iota // where the patcher is in its program
	opsStates             // what calls through each ops amount to
	published             // whether a batch can be found
	reference             // the patcher's, where handlers share a count or do not count

	text    // the bytes that are there
	literal // what the site's literal names
	role    // the site's part in the update that is under way
	done    // how far the step that is made site by site has got with it
	enabled // whether the last update that it took part in was to enable it
	settled // what completed updates promise
	entry   // what the published batch has about it
	waiting // its stores that are not visible yet
	chosen  // whether a choice of sites that is being made takes it: no state, any value at any time

	does  // what the CPU does
	asked // what it was asked for
	stand // whether it is to stand still
	home  // whether the patcher sits on it
	space // where an isolated CPU is

	window // which texts of the site the CPU may still fetch

	numAttrs
)

// locus is whose an attribute is.
type locus uint8

const (
	ofPatcher locus = iota
	ofSite
	ofCPU
	ofPair
)

var attrs = [numAttrs]struct {
	name string
	of   locus
	size int // how many values it has; 0 for those of a domain
}{
	place: {"place", ofPatcher, 0}, opsStates: {"ops", ofPatcher, 0}, published: {"published", ofPatcher, 2},
	reference: {"reference", ofPatcher, 2},
	text:      {"text", ofSite, 0}, literal: {"literal", ofSite, 0}, role: {"role", ofSite, int(numRoles)},
	done: {"done", ofSite, siteDone + 1}, enabled: {"enabled", ofSite, 2}, settled: {"settled", ofSite, int(numSettled)},
	entry: {"entry", ofSite, int(numEntries)}, waiting: {"waiting", ofSite, 0}, chosen: {"chosen", ofSite, 2},
	does: {"does", ofCPU, 0}, asked: {"asked", ofCPU, int(numAsked)}, stand: {"stand", ofCPU, int(numStand)},
	home: {"home", ofCPU, 2}, space: {"space", ofCPU, 4},
	window: {"window", ofPair, 0},
}

func (a attr) String() string { return attrs[a].name }

// number is a value's in its attribute's domain.
type number uint16

// view is what one CPU and one site are to each other: a value of each attribute.
type view [numAttrs]number

// values is a set of values of one attribute.
type values [8]uint64

func only(list ...number) (s values) {
	for _, x := range list {
		s[x>>6] |= 1 << (x & 63)
	}
	return s
}

func (s values) has(x number) bool { return s[x>>6]>>(x&63)&1 != 0 }

func (s values) union(t values) values {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// meets tells whether two sets have a member in common.
func (s values) meets(t values) bool {
	for i := range s {
		if s[i]&t[i] != 0 {
			return true
		}
	}
	return false
}

// list is the members below n.
func (s values) list(n int) (out []number) {
	for x := range n {
		if s.has(number(x)) {
			out = append(out, number(x))
		}
	}
	return out
}

// maxValues is how many values an attribute can have: one is kept for none of them.
const maxValues = len(values{})*64 - 1

// domain numbers the values of an attribute as they are met.
type domain[T comparable] struct {
	of   attr
	list []T
}

// index is the number of a value; new ones get the next. Where there is no room it panics
// with a limit, from which closeViews recovers.
func (d *domain[T]) index(v T) number {
	if i := slices.Index(d.list, v); i >= 0 {
		return number(i)
	}
	if len(d.list) == maxValues {
		panic(limit(fmt.Sprintf("more than %d values of %q", maxValues, d.of)))
	}
	d.list = append(d.list, v)
	return number(len(d.list) - 1)
}

// where are the numbers of the values that is holds of. Values without a number yet are left out.
func (d *domain[T]) where(is func(v *T) bool) (s values) {
	for i := range d.list {
		if is(&d.list[i]) {
			s[i>>6] |= 1 << (i & 63)
		}
	}
	return s
}

// limit says what there was no room for.
type limit string

// scope says whose attribute is meant: the acting CPU's or site's own (or the only
// patcher's), that of every one, of some CPU, or of some CPU that is at the acting site.
type scope uint8

const (
	own scope = iota
	every
	some
	someHere
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
	fresh               // of a window: only the text that is there
	older               // of does: the CPU's promise ends
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
	picks  bool // it depends on the choice
	rare   bool // it happens finitely often while a patcher waits
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
func (b *branch) key() string {
	k := make([]byte, 0, 256)
	put := func(tests []test) {
		for _, t := range tests {
			k = append(k, 1, byte(t.attr))
			for _, w := range t.in {
				k = binary.AppendUvarint(k, w)
			}
		}
		k = append(k, 0)
	}
	for _, c := range b.when {
		k = append(k, 1, byte(c.who))
		put(c.any)
	}
	k = append(k, 0)
	for _, u := range b.then {
		k = append(k, 1, byte(u.attr), byte(u.how), byte(u.ofCPUs), byte(u.ofSites))
		k = binary.LittleEndian.AppendUint16(k, uint16(u.to))
		put(u.provided)
	}
	return string(append(append(k, 0), b.broken...))
}

// cube is a set of views: those that have, of each attribute, one of some values. An
// attribute that makes no difference has all of them.
type cube [numAttrs]values

// cubesOf joins views to few cubes that hold the same.
func cubesOf(views []view) []cube {
	list := make([]cube, len(views))
	for i, v := range views {
		for a := range numAttrs {
			list[i][a] = only(v[a])
		}
	}
	return joined(list)
}

// joinOrder is the order in which cubes are joined along attributes: first those in
// which most views differ.
var joinOrder = []attr{does, asked, window, stand, settled, home, done, opsStates, enabled, entry, role, text, waiting,
	literal, space, published, reference, place}

// joined merges cubes that differ in one attribute alone, over and over. It returns them in
// the order of their values.
func joined(list []cube) []cube {
	for before := -1; before != len(list); {
		before = len(list)
		for _, a := range joinOrder {
			at := make(map[cube]int, len(list))
			kept := list[:0]
			for _, x := range list {
				key := x
				key[a] = values{}
				if i, ok := at[key]; ok {
					kept[i][a] = kept[i][a].union(x[a])
					continue
				}
				at[key] = len(kept)
				kept = append(kept, x)
			}
			list = kept
		}
	}
	slices.SortFunc(list, compareCubes)
	return list
}

func compareCubes(x, y cube) int {
	for a := range numAttrs {
		for i := range x[a] {
			if c := cmp.Compare(x[a][i], y[a][i]); c != 0 {
				return c
			}
		}
	}
	return 0
}
