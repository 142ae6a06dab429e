// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/cpus/isa"
	"github.com/textpoke/textpoke/int3"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
)

// liveMachine is a model on the live machine.
type liveMachine struct {
	*cpus.Machine
	executors []*poke.Executor
}

// Furnishable is a machine of any engine, at rest: it takes literals and ops.
type Furnishable interface {
	StoreLiteral(site int, ops uint64)
	AddOps(addr uint64) error
	SetOps(addr uint64, o cpus.Outcome)
}

// Furnish gives a machine the model's literals and ops, in their initial state.
func (m *Model) Furnish(machine Furnishable) error {
	for site, ops := range m.Literals {
		machine.StoreLiteral(site, ops)
	}
	for _, ops := range m.Ops() {
		if err := machine.AddOps(ops); err != nil {
			return err
		}
		machine.SetOps(ops, cpus.CalledWild)
	}
	for _, ops := range m.Attached {
		machine.SetOps(ops, cpus.CalledTracer)
	}
	return nil
}

// live builds the machine of a model, at rest.
func (m *Model) live(trail *cpus.Trail, seed uint64) (*liveMachine, error) {
	table := int3.NewTable(m.Refs, len(m.Roles))
	machine, err := cpus.NewMachine(cpus.Config{
		Code: m.Code, Roles: m.Roles, Handler: table, NopOps: m.NopOps, Seed: seed, Senders: len(m.Programs), Trail: trail,
		Initial: func(site int) isa.Text { return m.Initial[site] },
	})
	if err != nil {
		return nil, err
	}
	if err := m.Furnish(machine); err != nil {
		return nil, err
	}
	l := &liveMachine{Machine: machine}
	shared := poke.NewShared(m.rules)
	for i := range m.Programs {
		x := poke.NewExecutor(machine, table, m.Lookup, cpus.NewRandom(seed, uint64(1000+i)), i)
		x.Home, x.Filling, x.Shared, x.Trail, x.ID = m.homes[i], m.Filling, shared, trail, i
		l.executors = append(l.executors, x)
	}
	return l, nil
}

// Record runs the model's programs on the live machine, goroutines and all, and
// returns what happened, step by step, in the order of the accesses: at most max
// steps. A violation ends up in the trace. Tasks are not preempted there.
func Record(ctx context.Context, m *Model, seed uint64, max int) (*Trace, error) {
	for _, p := range m.Programs {
		if p.Menu != nil {
			return nil, errors.New("record: the workload is endless: want one that is made once")
		}
	}
	trail := &cpus.Trail{Max: max}
	l, err := m.live(trail, seed)
	if err != nil {
		return nil, err
	}
	l.Start()
	parent := ctx
	group, ctx := errgroup.WithContext(parent)
	for i, p := range m.Programs {
		group.Go(func() error {
			return l.executors[i].Run(ctx, &poke.Update{
				Patches: p.Patches, Plan: p.Plan,
				Shape: poke.Shape{Traits: m.Code.Traits, Len: m.Code.Len, Patches: len(p.Patches)},
			})
		})
	}
	err = group.Wait()
	l.Stop()
	var failed *poke.Error // of two patchers in each other's way: the violation tells
	if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) &&
		parent.Err() != nil) {
		return nil, fmt.Errorf("record: %w", err)
	}
	t := &Trace{Live: true}
	for _, s := range trail.Steps() {
		var a action
		for k := range kindLetters {
			if kindLetters[k] == s.Kind {
				a.kind = kind(k)
			}
		}
		a.who = uint8(s.Who)
		answers := spelling.Each(s.Answers, func(n int) uint8 { return uint8(n) })
		step := Step{Do: a.spell(answers), Event: s.Event.String()}
		if a.kind == stepCPU || a.kind == tick || a.kind == nmi {
			step.After = stateOf(&s.CPU)
		}
		t.Steps = append(t.Steps, step)
	}
	if _, first := l.Violations(); len(first) > 0 {
		t.Violation = first[0]
	}
	return t, nil
}

// Ops are all ops that text or a literal can name, without nop_ops.
func (m *Model) Ops() []uint64 {
	return slices.DeleteFunc(slices.Clone(m.ops), func(ops uint64) bool { return ops == m.NopOps })
}
