// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// Proof is what is known of a protocol for any number of CPUs, sites and updates.
type Proof struct {
	closure *closure
	// Broken are the properties that steps of views break: none where the protocol is
	// proved. A view that breaks something may be one that no machine gets to.
	Broken []Break
	// Condition is why nothing can be said at all: the plan is of a shape that views
	// cannot tell. "" where they tell.
	Condition string
	// Cut is the limit that was hit before every view was found, with the fetch model that
	// was asked for; "" for none.
	Cut string
	// Stuck is a step behind which an update may never come, of a protocol that is proved; "" where
	// every update ends.
	Stuck string
	// Offset is where sites lie: where that was asked for, or where the proof fails.
	Offset explore.Offset
}

// Break is a property that some view lets a step break, and the way there.
type Break struct {
	Property cpus.Property
	Step     string
	Story    string
}

// Close finds every view of a protocol. Errors are those of the request; what cannot be
// proved is no error.
//
// It looks at weak fetches first: they have every fetch of every other model, so that
// what cannot break with them breaks with none.
func Close(ctx context.Context, s *explore.Setup) (*Proof, error) {
	weak := *s
	weak.Fetch = cpus.Weak
	p, err := closeWith(ctx, &weak)
	if err != nil || p.Closed() || s.Fetch == cpus.Weak {
		return p, err
	}
	finer, err := closeCrossings(ctx, s)
	if err == nil && finer.Cut != "" { // the order of stores is too much to remember
		p.Cut = finer.Cut
		return p, nil
	}
	return finer, err
}

// closeCrossings is Close with the setup's fetch model, for every place of sites unless one is
// asked for. If all places are proved it returns the proof of the usual one.
func closeCrossings(ctx context.Context, s *explore.Setup) (*Proof, error) {
	offsets, err := s.Crossings()
	if err != nil {
		return nil, err
	}
	var first *Proof
	for _, offset := range offsets {
		at := *s
		at.Offset = offset
		p, err := closeWith(ctx, &at)
		switch {
		case err != nil || p.Cut != "":
			return p, err
		case !p.Closed() && offset != s.Offset:
			p.Condition, p.Broken = fmt.Sprintf("where all sites lie at %s mod 8: %s", offset, p.Why()), nil
			return p, nil
		case !p.Closed():
			return p, nil
		case first == nil:
			first = p
		}
	}
	return first, nil
}

// closeWith is Close with the setup's fetch model and place.
func closeWith(ctx context.Context, s *explore.Setup) (*Proof, error) {
	p := &Proof{Offset: s.Offset}
	m, err := newMachine(s)
	var impossible *poke.ImpossibleError
	var shape *ShapeError
	switch {
	case errors.As(err, &impossible):
		p.Condition = fmt.Sprintf("%s: %s", impossible.Property, impossible.Reason)
		return p, nil
	case errors.As(err, &shape):
		p.Condition = shape.Reason
		return p, nil
	case err != nil:
		return nil, err
	}
	p.closure, err = m.closeViews(ctx)
	var limit *LimitError
	switch {
	case errors.As(err, &limit):
		p.Cut = limit.Error()
		return p, nil
	case err != nil:
		return nil, err
	}
	for _, b := range p.closure.broken {
		p.Broken = append(p.Broken, Break{b.property, b.step, p.closure.story(b)})
	}
	if step := p.closure.unreached(); step != "" && len(p.Broken) == 0 {
		p.Condition = "no view gets to this step, so that nothing is known of it: " + step
	}
	if p.Closed() {
		p.Stuck = p.closure.stuck()
	}
	return p, nil
}

// Views is how many there are.
func (p *Proof) Views() int {
	if p.closure == nil {
		return 0
	}
	return len(p.closure.views)
}

// Closed tells whether no step leads out of the views, and none breaks anything.
func (p *Proof) Closed() bool { return p.Condition == "" && p.Cut == "" && len(p.Broken) == 0 }

// Obligations are what solvers must refute for the proof to hold of the whole machine:
// written with quantifiers, or for the CPUs and sites that each is about.
func (p *Proof) Obligations(withQuantifiers bool) []Obligation {
	if withQuantifiers {
		return p.closure.obligations(quantified)
	}
	return p.closure.obligations(ground)
}

// Certify asks a solver about the obligations, and returns those that it does not
// refute.
func (p *Proof) Certify(ctx context.Context, s *Solver) (n int, open []Open, err error) {
	list := p.Obligations(false)
	open, err = s.refute(ctx, list)
	return len(list), open, err
}

// Why says in a line what is not proved; "" where all is.
func (p *Proof) Why() string {
	if p.Condition != "" {
		return p.Condition
	}
	list := spelling.Each(p.Broken, func(b Break) string { return fmt.Sprintf("%s: %s", b.Property, b.Step) })
	if p.Cut != "" {
		list = append(list, "a limit is reached: "+p.Cut)
	}
	return strings.Join(list, "; ")
}
