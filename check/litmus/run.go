// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"context"
	"fmt"
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
// the order of ClassNames. It fails with a *TooLargeError when a search does not
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
