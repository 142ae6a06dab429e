// SPDX-License-Identifier: Apache-2.0

// Package mutations is the matrix of protocols and what can be taken away from
// them: the grid that is asked, what is known of the answer from elsewhere, a
// plot, and a report.
package mutations

import (
	"errors"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sim/axis"
)

// Questions are the questions of the matrix: every protocol that was chosen as it is and
// with every mutation that it offers, put where it can show.
func Questions(choices axis.Choices) ([]*check.Question, error) {
	all, _, err := check.Questions(choices)
	if err != nil {
		return nil, err
	}
	var out []*check.Question
	asked := map[string]bool{}
	for _, q := range all {
		if err := place(q); err != nil {
			return nil, err
		}
		if key := strings.Join(q.Flags(), " "); !asked[key] {
			asked[key] = true
			out = append(out, q)
		}
	}
	return out, nil
}

// Answer is what the rows say that were finished, in the order of the questions.
type Answer struct {
	*experiments.Study[Config, check.VerdictRow]
}

// Unexpected is the protocols that break without any mutation and are not among
// those that cannot be safe there in the first place; nil if there are none.
func (a *Answer) Unexpected() error {
	unexpected := a.BrokenOtherwise()
	if len(unexpected) == 0 {
		return nil
	}
	return fmt.Errorf("protocols break without any mutation: %s", strings.Join(unexpected, "; "))
}

// KnownUnsafe is what cannot be safe in the first place and is not, BrokenOtherwise the rest.
func (a *Answer) KnownUnsafe() []string {
	known, _ := a.brokenAsMeant()
	return known
}

func (a *Answer) BrokenOtherwise() []string {
	_, unexpected := a.brokenAsMeant()
	return unexpected
}

// brokenAsMeant says what breaks without any mutation, and where: what cannot be
// safe there in the first place, with the reason, and the rest.
func (a *Answer) brokenAsMeant() (known, unexpected []string) {
	broken := a.all().where(unmutated, isUnsafe)
	for _, p := range broken.names(protocolName) {
		on := broken.where(having(protocolName, p))
		for _, property := range on.names(propertyName) {
			some := on.where(having(propertyName, property))
			because := func(r *check.VerdictRow) string { return knownUnsafe(r.Question) }
			for _, why := range some.names(because) {
				line := property + ": " + a.places(some.where(having(because, why)))
				if why == "" {
					unexpected = append(unexpected, line)
				} else {
					known = append(known, line+"; "+why)
				}
			}
		}
	}
	return known, unexpected
}

// knownUnsafe says why a protocol cannot be safe on an architecture in the first
// place; "" where it can.
func knownUnsafe(q *check.Question) string {
	p, c := q.Setup.Protocol, q.Model.Code
	if p.OneStore && !c.Arch.AtomicStore(c.Sites[0], c.Len) {
		if q.Model.Code.Fetch == cpus.Atomic {
			return "no round ends the old calls before the ops is released: the protocol sends none there"
		}
		return "no store replaces a whole site at once"
	}
	var hangs *poke.ImpossibleError
	if errors.As(p.Compile(shapeOf(q), func(func(poke.Range) bool) {}, func(poke.Step) {}), &hangs) {
		return "its rounds cannot reach CPUs that have interrupts masked"
	}
	return ""
}

// shapeOf is the shape of a question's updates.
func shapeOf(q *check.Question) poke.Shape {
	c := q.Model.Code
	return poke.Shape{Traits: c.Traits, Len: c.Len, Patches: len(c.Sites), Detach: true}
}

// sends tells whether the protocol, without its mutation, has a step like that.
func sends(q *check.Question, op poke.Op) (found bool) {
	one := func(yield func(poke.Range) bool) { yield(poke.Range{From: 0, To: 1}) }
	s := shapeOf(q)
	s.Patches = 1
	q.Setup.Protocol.Unfold(s, one, func(st poke.Step) { found = found || st.Op == op })
	return found
}
