// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"
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
type values [6]uint64

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

// index is the number of a value; new ones get the next. It panics with a limit where
// there is no room, which who closes the views recovers.
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

// limit says what there was no room for.
type limit string
