// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/textpoke/textpoke/cpus"
)

// move is an action with its answers.
type move struct {
	action
	answers []uint8
}

// shorten leaves out steps that a violation does not need: first many actions one behind the other,
// then fewer, for as long as the others can still happen and end in a violation (Zeller and
// Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
// Engineering 28(2), 2002). The property may then be another one.
func (m *Model) shorten(t *Trace) (*Trace, error) {
	var way []move
	for _, s := range t.Steps {
		a, answers, err := parseAction(s.Do)
		if err != nil {
			return nil, err
		}
		way = append(way, move{a, answers})
	}
	for size := len(way) / 2; size > 0; {
		before := len(way)
		for from := 0; from+size <= len(way); {
			if left, breaks := m.breaks(slices.Delete(slices.Clone(way), from, from+size)); breaks {
				way = left
			} else {
				from += size
			}
		}
		if size = min(size, len(way)) / 2; size == 0 && len(way) < before {
			size = 1
		}
	}
	short := &Trace{}
	real, by := newWorld(m), &tracer{m: m, e: newExpander(m, Reductions{})}
	for _, mv := range way {
		short.Steps = append(short.Steps, by.follow(real, mv.action, mv.answers)...)
	}
	if real.found == nil {
		return nil, errNoTrace
	}
	short.Violation = *real.found
	return short, nil
}

// breaks tells whether actions can happen one after the other, and something breaks, and which
// of them it takes.
func (m *Model) breaks(way []move) (taken []move, breaks bool) {
	w := newWorld(m)
	for i, mv := range way {
		switch {
		case mv.kind == skip && w.Pending(int(mv.who), false): // there is something to look for
			return nil, false
		case !w.may(mv.action):
			return nil, false
		}
		ch := cpus.Repeat(mv.answers)
		w.full = false
		w.perform(mv.action, ch)
		switch {
		case !ch.Fits() || w.full:
			return nil, false
		case w.found != nil:
			return way[:i+1], true
		}
	}
	return nil, false
}
