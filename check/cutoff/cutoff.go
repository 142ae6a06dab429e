// SPDX-License-Identifier: Apache-2.0

package cutoff

import (
	"context"
	"fmt"
	"slices"

	"github.com/textpoke/textpoke/check/explore"
	"github.com/textpoke/textpoke/cpus"
)

// The names of the conditions.
const (
	AllStates   = "all-states"   // every state of the machine that was looked at
	Noted       = "noted"        // every step touches what it was noted to touch, and nothing else
	Private     = "private"      // no CPU reads what another CPU writes
	EveryCPU    = "every-cpu"    // patchers treat CPUs alike
	SameWithout = "same-without" // steps are the same where another CPU is left out, waits are over no later
)

// Condition is one thing that the argument takes.
type Condition struct {
	Name  string
	Holds bool
	Why   string // why it holds, in words; else who does what, so that it does not
}

func (c Condition) String() string {
	if c.Holds {
		return fmt.Sprintf("%s: %s", c.Name, c.Why)
	}
	return fmt.Sprintf("%s fails: %s", c.Name, c.Why)
}

// Answer says which machine stands for all larger ones, and why.
type Answer struct {
	// Roles are the CPUs of the cutoff: the homes of the patchers, in their order, and
	// one CPU of each role that the model has. Model is the model with them: where it is
	// safe, so is the model with more CPUs of these roles, any number of each.
	Roles []cpus.Role
	Model *explore.Model
	// Conditions are all that there are. Where one fails nothing is known of larger
	// machines.
	Conditions []Condition

	// Examined are the CPUs of the machine whose steps were looked at, States and Steps
	// how many there were.
	Examined      []cpus.Role
	States, Steps uint64
}

// Holds tells whether every condition does.
func (a *Answer) Holds() bool {
	return !slices.ContainsFunc(a.Conditions, func(c Condition) bool { return !c.Holds })
}

// Failed are the conditions that do not hold.
func (a *Answer) Failed() (failed []Condition) {
	for _, c := range a.Conditions {
		if !c.Holds {
			failed = append(failed, c)
		}
	}
	return failed
}

// Limit is how many states Of looks at unless it is told otherwise.
const Limit = 2_000_000

// Of finds the cutoff of a model, which is prepared, and holds every step of a machine of
// one CPU more, or of two CPUs of each role where CPUs share a counter, against the
// conditions. limit bounds the states that it looks at; 0 stands for Limit. Errors are
// those of a machine of that size that cannot be explored, and ctx's.
func Of(ctx context.Context, m *explore.Model, limit uint64) (*Answer, error) {
	if limit == 0 {
		limit = Limit
	}
	homes, others := kindsOf(m)
	a := &Answer{}
	var err error
	if a.Roles, a.Model, err = build(m, homes, others); err != nil {
		return nil, fmt.Errorf("cutoff: %w", err)
	}
	twins := others[len(others)-1:]
	if m.SharesReferences() {
		twins = others
	}
	roles, larger, err := build(m, homes, others, twins)
	if err != nil {
		return nil, fmt.Errorf("cutoff: a machine to look at, %s: %w", cpus.FormatRoles(roles), err)
	}
	x, err := explore.Examine(ctx, larger, limit)
	if err != nil {
		return nil, err
	}
	a.Examined, a.States, a.Steps = roles, x.States, x.Steps
	a.Conditions = []Condition{
		allStates(a, x), noted(x), private(larger, x), everyCPU(larger, x), sameWithout(x),
	}
	return a, nil
}

// kind is what makes a CPU differ from others.
type kind struct {
	role cpus.Role
	deaf bool
}

// kindsOf are the kinds of the patchers' homes, and each kind that there is once, the homes'
// own first.
func kindsOf(m *explore.Model) (homes, others []kind) {
	of := func(cpu int) kind { return kind{m.Roles[cpu], m.Code.Deaf>>cpu&1 != 0} }
	for _, cpu := range m.Homes() {
		homes = append(homes, of(cpu))
	}
	for _, cpu := range append(m.Homes(), numbers(len(m.Roles))...) {
		if k := of(cpu); !slices.Contains(others, k) {
			others = append(others, k)
		}
	}
	return homes, others
}

func numbers(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// build is the model with CPUs of these kinds.
func build(m *explore.Model, lists ...[]kind) ([]cpus.Role, *explore.Model, error) {
	var roles []cpus.Role
	deaf := uint64(0)
	for _, list := range lists {
		for _, k := range list {
			if k.deaf {
				deaf |= 1 << len(roles)
			}
			roles = append(roles, k.role)
		}
	}
	o, err := m.With(roles, deaf)
	return roles, o, err
}
