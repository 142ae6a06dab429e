// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"fmt"
)

// maxStates bounds a search; the shipped tests need some hundred.
const maxStates = 1 << 16

// found is what a search has to tell.
type found struct {
	states  int
	reached bool     // the outcome
	witness []string // how, step by step, when reached
}

// search goes through all executions, short ones first, until one ends in the
// outcome. A test with too many states is an error, never a verdict.
func (m *machine) search(ctx context.Context) (found, error) {
	var f found
	var states []state
	var from []int32
	var by []move
	err := m.explore(ctx, func(s *state, parent int32, v move) bool {
		states, from, by = append(states, *s), append(from, parent), append(by, v)
		f.states++
		f.reached = m.ended(s) && m.holds(s)
		return !f.reached
	})
	if err != nil || !f.reached {
		return f, err
	}
	for i := len(states) - 1; from[i] >= 0; i = int(from[i]) {
		f.witness = append(f.witness, m.words(&states[from[i]], by[i]))
	}
	n := len(f.witness)
	for i := range n / 2 {
		f.witness[i], f.witness[n-1-i] = f.witness[n-1-i], f.witness[i]
	}
	for i := range f.witness {
		f.witness[i] = fmt.Sprintf("%d. %s", i+1, f.witness[i])
	}
	return f, nil
}

// explore calls visit for every state that can be reached, once, with the number
// of the state before and the step between; it ends when visit returns false.
func (m *machine) explore(ctx context.Context, visit func(s *state, parent int32, by move) bool) error {
	first := m.start()
	seen := map[state]struct{}{first: {}}
	queue := []state{first}
	if !visit(&first, -1, move{}) {
		return nil
	}
	var moves []move
	for at := 0; at < len(queue); at++ {
		if at%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("litmus %s on %s: stopped after %d states: %w", m.test.Name, m.class.name, len(seen), ctx.Err())
		}
		here := queue[at]
		moves = m.moves(&here, moves)
		for _, v := range moves {
			next := m.apply(here, v)
			if _, ok := seen[next]; ok {
				continue
			}
			if len(seen) == maxStates {
				return &TooLargeError{m.test.Name, m.class.name, maxStates}
			}
			seen[next] = struct{}{}
			queue = append(queue, next)
			if !visit(&next, int32(at), v) {
				return nil
			}
		}
	}
	return nil
}

// TooLargeError says that a test has more states than a search keeps: there is no
// verdict.
type TooLargeError struct {
	Test, Class string
	States      int // so many were looked at
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("litmus %s on %s: more than %d states: too large to say allowed or forbidden", e.Test, e.Class,
		e.States)
}
