// SPDX-License-Identifier: Apache-2.0

// Package combine asks how many interrupts a kernel would save if its tasks shared
// their rounds, in place of waiting for text_mutex.
package combine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/internal/spelling"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/sched"
	"github.com/textpoke/textpoke/sim"
)

// Config says who asks for what how often.
// Its fields are the flags of combine.experiment.
type Config struct {
	Machines []experiments.Machine // their times order what happens
	Clients  []int
	Loads    []float64
	Patches  int
	Updates  int
}

// Experiment is the question.
var Experiment = experiments.New("combine/combine.experiment", measure)

// row is what the updates of clients on a machine come to one way.
type row struct {
	Machine experiments.Machine
	Clients int
	Load    float64
	batches []batch
	round   nanos
	scheme
	outcome
	today *row // what the kernel of today does of the same
}

// IPIs are the interrupts that all CPUs take together.
func (r *row) IPIs() int { return (&poke.Count{Rounds: r.Rounds}).IPIs(r.Machine.Online, 0) }

// Ideal is the rounds of an update if every batch carried out all clients.
func (r *row) Ideal() float64 { return float64(len(r.batches[r.Clients])) / float64(r.Clients) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (any, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Clients) * len(c.Loads) * len(schemes)
	var rows []*row
	for _, m := range c.Machines {
		all, err := batches(ctx, m, slices.Max(c.Clients), c.Patches)
		if err != nil {
			return s, err
		}
		round := nanos(math.Round(m.Costs.Round(m.Online - 1)))
		for _, n := range c.Clients {
			for _, load := range c.Loads {
				today := len(rows)
				for _, way := range schemes {
					rows = append(rows, &row{Machine: m, Clients: n, Load: load, batches: all, round: round, scheme: way})
					rows[len(rows)-1].today = rows[today]
				}
			}
		}
	}
	return s, experiments.Each(ctx, s, rows, func(r *row) (*row, error) {
		alone := r.batches[1].takes(r.round)
		drawn := pauses(s.Seed, r.Clients, c.Updates, float64(alone)*(1-r.Load)/r.Load)
		r.outcome = simulate(r.scheme, r.round, r.batches, drawn)
		return r, nil
	})
}

// nanos is a time, or a point in time, in nanoseconds. Times only order what happens.
type nanos int64

// batch is one update: how long the stores before each of its rounds take.
type batch []nanos

// takes is how long the update takes, stores and rounds.
func (b batch) takes(round nanos) nanos {
	return nanos(len(b))*round + spelling.Sum(b)
}

// slots is what the kernel queues before it sends rounds: TP_VEC_MAX, a page of entries of
// 16 bytes (arch/x86/kernel/alternative.c, Linux 6.12).
const slots = 256

// batches compiles what the kernel does on a machine, once for each number of clients
// up to most whose patches are queued together, in address order.
func batches(ctx context.Context, m experiments.Machine, most, patches int) ([]batch, error) {
	c, err := m.Job(ctx, experiments.Lab{}, experiments.Ascending(most*patches))
	if err != nil {
		return nil, err
	}
	c.Buffer = sched.Buffer{Slots: slots}
	job, err := sim.NewJob(c)
	if err != nil {
		return nil, err
	}
	which := spelling.Numbers(most * patches)
	out := make([]batch, most+1) // none of them for no client
	for n := 1; n <= most && ctx.Err() == nil; n++ {
		plan, err := job.Of(which[:n*patches], job.Buffer).Plan()
		if err != nil {
			return nil, err
		}
		if out[n] = compiled(plan, m.Costs.Store); len(out[n]) == 0 {
			return nil, fmt.Errorf("calibration %s: updates on %s send no rounds that could be shared", m, m.Arch)
		}
	}
	return out, ctx.Err()
}

// compiled is the batch that a plan is, where one store takes so many nanoseconds.
func compiled(plan []poke.Step, store float64) (b batch) {
	stores := 0
	for _, s := range plan {
		switch s.Op {
		case poke.Write:
			stores += int(s.To - s.From)
		case poke.Sync:
			b = append(b, nanos(math.Round(float64(stores)*store)))
			stores = 0
		}
	}
	return b
}
