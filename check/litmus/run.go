// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/cpus/isa"
)

// Row is one test's answer for one machine class.
type Row struct {
	Test     string
	Class    string // see ClassNames
	Outcome  string // what was asked
	Verdict  Verdict
	Expected Verdict // None: the sources say nothing
	Agrees   bool    // Verdict is Expected, or nothing is
	Differs  string  // why it may disagree, as the file says; "" for not at all
	States   int     // explored

	// The window model, against Expected or, without that, Verdict.
	Window   Verdict
	Relation Relation
	Declared Relation // as the file says
	Why      string   // the file's reason

	Witness []string // numbered steps to the outcome, when allowed
}

// Check is nil when the row is as its file says: the verdict is the expected one
// or declared to differ, and the window model stands to it as declared.
func (r *Row) Check() error {
	switch {
	case !r.Agrees && r.Differs == "":
		return fmt.Errorf("litmus %s on %s: %s, expected %s", r.Test, r.Class, r.Verdict, r.Expected)
	case r.Agrees && r.Differs != "":
		return fmt.Errorf("litmus %s on %s: differs is declared, but %s is what is expected", r.Test, r.Class, r.Verdict)
	case r.Relation != r.Declared:
		return fmt.Errorf("litmus %s on %s: the window model says %s: %s, declared %s", r.Test, r.Class, r.Window, r.Relation,
			r.Declared)
	}
	return nil
}

// Run answers the test for every class that its file expects something of, in
// the order of ClassNames. It fails with ErrTooLarge when a search does not
// end, or when ctx ends.
func (t *Test) Run(ctx context.Context) ([]Row, error) {
	rows := make([]Row, 0, len(t.expect))
	for _, e := range t.expect {
		f, err := newMachine(t, e.class).search(ctx)
		if err != nil {
			return nil, err
		}
		byWindows, err := newMachine(t, e.class.window()).search(ctx)
		if err != nil {
			return nil, err
		}
		w := verdict(byWindows.reached)
		r := Row{
			Test: t.Name, Class: e.class.name, Outcome: t.Outcome(),
			Verdict: verdict(f.reached), Expected: e.want, Differs: e.differs, States: f.states,
			Window: w, Declared: e.window, Why: e.why, Witness: f.witness,
		}
		against := e.want
		if against == None {
			against = r.Verdict
		}
		r.Agrees = r.Verdict == against
		switch {
		case w == against:
			r.Relation = Same
		case w == Allowed:
			r.Relation = Weaker
		default:
			r.Relation = Stronger
		}
		rows = append(rows, r)
	}
	return rows, nil
}

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
		newest := func(site int) isa.Text { return s.text[site][s.newest[site]] }
		f.reached = m.ended(s) && m.test.holds(s.regs[:], s.data[:], newest)
		return !f.reached
	})
	if err != nil || !f.reached {
		return f, err
	}
	for i := len(states) - 1; from[i] >= 0; i = int(from[i]) {
		f.witness = append(f.witness, m.words(&states[from[i]], by[i]))
	}
	slices.Reverse(f.witness)
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
				return fmt.Errorf("litmus %s on %s: more than %d states: %w", m.test.Name, m.class.name, maxStates, ErrTooLarge)
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

// ErrTooLarge says that a test has more states than a search keeps: there is no verdict.
var ErrTooLarge = errors.New("too large to say allowed or forbidden")
