// SPDX-License-Identifier: Apache-2.0

package service_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// line is what a server that is going to be killed says of itself, on stdout, one
// write each: what it writes it has seen, and what it has not written nobody saw.
type line struct {
	Event   string // ready, try, ack, no, end, look, point
	At      int64  // Unix nanoseconds; of a look that of its beginning
	Until   int64  `json:",omitempty"` // its end
	Asked   asked  `json:",omitzero"`
	ID      int64  `json:",omitempty"`
	State   string `json:",omitempty"` // end: the last state; point: its name; no: why
	Set     uint64 `json:",omitempty"` // ready, look: what is enabled
	Updates []told `json:",omitempty"` // ready: all that are known
	Wrong   string `json:",omitempty"` // ready: what is wrong with the text
}

// seen is what the world outside knows after any number of lives of a server.
type seen struct {
	base   wanted // at the last ready
	tries  map[string]asked
	called map[string]int64 // when
	ids    map[string]int64 // acknowledged
	ends   map[string]kept
	open   map[string]asked // whose clients have seen no end
	life   []porcupine.Operation
	checks int // comparisons made
}

// keepUpdates is how many that have ended the journals of these tests keep: older
// ones may be gone.
const keepUpdates = 50

// checkTime is more than any history here takes to check.
const checkTime = 2 * time.Minute

func newSeen() *seen {
	return &seen{open: map[string]asked{}, tries: map[string]asked{}, called: map[string]int64{}, ids: map[string]int64{},
		ends: map[string]kept{}}
}

// hear takes a line in. What it says against what is known already is an error.
func (s *seen) hear(l line) error {
	key := l.Asked.Key
	switch l.Event {
	case "try":
		if s.open[key] = l.Asked; s.ids[key] == 0 {
			s.tries[key], s.called[key] = l.Asked, l.At
		}
	case "no": // refused: it is to leave no trace
		if delete(s.open, key); s.ids[key] != 0 {
			return fmt.Errorf("%s: refused, and it is update %d: %s", key, s.ids[key], l.State)
		}
		delete(s.tries, key)
	case "ack":
		if was, ok := s.ids[key]; ok && was != l.ID {
			return fmt.Errorf("%s: acknowledged as update %d, and before as %d", key, l.ID, was)
		}
		s.ids[key] = l.ID
	case "end":
		delete(s.open, key)
		return s.end(key, l.ID, l.State, l.At)
	case "look":
		s.life = append(s.life, porcupine.Operation{Input: look{}, Call: l.At, Output: l.Set, Return: l.Until})
	case "ready":
		return s.restart(l)
	}
	return nil
}

// again is what clients ask for again after a restart: they were told nothing, or
// that it was accepted.
func (s *seen) again() []asked { return slices.Collect(maps.Values(s.open)) }

// states counts updates by how they ended.
func (s *seen) states() map[string]int {
	n := map[string]int{}
	for _, k := range s.ends {
		n[k.State]++
	}
	return n
}

// varied tells whether updates have ended in every way.
func (s *seen) varied() bool { return len(s.states()) == len(lastStates) }

var lastStates = []string{"live", "failed", "cancelled", "expired"}

// end notes how an update ended.
func (s *seen) end(key string, id int64, state string, at int64) error {
	if was, ok := s.ends[key]; ok {
		if was.State != state {
			return fmt.Errorf("%s: %s, and before it was answered as %s", key, state, was.State)
		}
		return nil
	}
	if !slices.Contains(lastStates, state) {
		return fmt.Errorf("%s: ended as %q", key, state)
	}
	s.ends[key] = kept{s.tries[key], id, state}
	s.life = append(s.life, porcupine.Operation{Input: s.tries[key], Call: s.called[key], Output: state, Return: at})
	return nil
}

// restart holds what a server says when it is ready against all that is known,
// and the life that ended against the model.
func (s *seen) restart(l line) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if l.Wrong != "" {
		wrong("the text: %s", l.Wrong)
	}
	there := map[string]bool{}
	for _, k := range l.Updates {
		asked, tried := s.tries[k.Key]
		switch id, acked := s.ids[k.Key]; {
		case !tried:
			wrong("update %d, %q: nobody asked for it, or it was refused", k.ID, k.Key)
		case there[k.Key]:
			wrong("update %d, %q: there are two of it", k.ID, k.Key)
		case !k.fits(asked):
			wrong("update %d: it is %+v, and was %+v", k.ID, k, asked)
		case acked && id != k.ID:
			wrong("update %d, %q: it was acknowledged as %d", k.ID, k.Key, id)
		default:
			errs = append(errs, s.end(k.Key, k.ID, k.State, l.At))
		}
		there[k.Key] = true
		s.ids[k.Key] = k.ID
	}
	for key := range s.ids {
		if _, ended := s.ends[key]; !there[key] && !(ended && len(l.Updates) >= keepUpdates) {
			wrong("update %d, %q: it was acknowledged, and is lost", s.ids[key], key)
		}
	}
	for key := range s.tries {
		if s.ids[key] == 0 {
			delete(s.tries, key)
		}
	}
	now := wanted{}.fold(slices.Collect(maps.Values(s.ends)))
	if l.Set != now.enabled() {
		wrong("enabled are %#x, and %#x were made live", l.Set, now.enabled())
	}
	return errors.Join(append(errs, s.close(l, now))...)
}

// close checks the life that ended, and begins the next with what is wanted now.
func (s *seen) close(l line, now wanted) error {
	history := append(s.life, porcupine.Operation{Input: look{}, Call: l.At, Output: l.Set, Return: l.At + 1})
	base := s.base
	s.life, s.base = nil, now
	s.checks++
	return linearizable(base, history)
}

// linearizable holds a history against the model.
func linearizable(base wanted, history []porcupine.Operation) error {
	for i := range history {
		history[i].ClientId = i
	}
	switch result, info := porcupine.CheckOperationsVerbose(from(base), history, checkTime); result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("whether %d operations are linearizable was not found out in %v", len(history), checkTime)
	default:
		return notLinearizable(base, history, info)
	}
}

// notLinearizable says so, with what happened around the place beyond which no
// sequence explains the history.
func notLinearizable(base wanted, history []porcupine.Operation, info porcupine.LinearizationInfo) error {
	var longest []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, ops := range part {
			if len(ops) > len(longest) {
				longest = ops
			}
		}
	}
	done := map[int]bool{}
	for _, op := range longest {
		done[op.ClientId] = true
	}
	describe := from(base).DescribeOperation
	var b strings.Builder
	fmt.Fprintf(&b, "a history of %d operations is not linearizable; %d are explained, and these are not:", len(history),
		len(longest))
	left := 12
	for _, op := range history {
		if !done[op.ClientId] && left > 0 {
			fmt.Fprintf(&b, "\n\t%d to %d: %s", op.Call, op.Return, describe(op.Input, op.Output))
			left--
		}
	}
	return errors.New(b.String())
}
