// SPDX-License-Identifier: Apache-2.0

// Package combine asks how many interrupts a kernel would save whose tasks shared
// their rounds where they wait for text_mutex today.
package combine

import (
	"context"
	_ "embed"
	"math"

	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/poke"
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

//go:embed combine.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Fields: (*Config).fields, Measure: measure,
}).Experiment()

var shares = experiments.Number("numbers above 0 and up to 1", func(v float64) bool { return v > 0 && v <= 1 })

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.List(&c.Loads, "load", "0.01,0.1,0.5,1",
			"`list` of shares of its time that a client would spend on updates if it were alone", shares),
	}
}

// point is clients on a machine.
type point struct {
	Machine experiments.Machine
	Clients int
	Load    float64
	batches []batch
	round   nanos
}

// row is what their updates come to one way.
type row struct {
	*point
	scheme
	outcome
	today *row // what the kernel of today does of the same
}

// RoundsPerUpdate is the mean.
func (r *row) RoundsPerUpdate() float64 { return float64(r.Rounds) / float64(r.Updates) }

// IPIs are the interrupts that all CPUs take together.
func (r *row) IPIs() int { return (&poke.Count{Rounds: r.Rounds}).IPIs(r.Machine.Online, 0) }

// IPIsPerCPU are those of one update that a CPU takes, in the mean over CPUs.
func (r *row) IPIsPerCPU() float64 {
	return float64(r.IPIs()) / float64(r.Updates*r.Machine.Online)
}

// Saved is the share of today's rounds, and so of interrupts, that are not sent.
func (r *row) Saved() float64 { return 1 - float64(r.Rounds)/float64(r.today.Rounds) }

// Ideal is the rounds of an update if every batch carried out all clients.
func (r *row) Ideal() float64 { return float64(len(r.batches[r.Clients])) / float64(r.Clients) }

// TimesIdeal is how far from that the rounds are.
func (r *row) TimesIdeal() float64 { return r.RoundsPerUpdate() / r.Ideal() }

// ContendedShare is the share of updates that were asked for while another was under way.
func (r *row) ContendedShare() float64 { return float64(r.Contended) / float64(r.Updates) }

// ContendedToday is that share without any sharing.
func (r *row) ContendedToday() float64 { return r.today.ContendedShare() }

// Latency is the mean time from asking until done, in rounds that one client would wait for.
func (r *row) Latency() float64 { return float64(r.latency) / float64(r.Updates) / float64(r.round) }

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Clients) * len(c.Loads) * len(schemes)
	a := &answer{Study: s}
	err := c.each(ctx, func(p *point) error {
		alone := p.batches[1].takes(p.round)
		drawn := pauses(s.Seed, p.Clients, c.Updates, float64(alone)*(1-p.Load)/p.Load)
		var now *row
		for _, way := range schemes {
			r := &row{point: p, scheme: way, outcome: simulate(way, p.round, p.batches, drawn)}
			if way.Name == today {
				now = r
			}
			r.today = now
			if err := s.Add(r); err != nil {
				return err
			}
		}
		return nil
	})
	return &experiments.Findings{Report: a}, err
}

// each goes over the points.
func (c *Config) each(ctx context.Context, do func(*point) error) error {
	most := 0
	for _, n := range c.Clients {
		most = max(most, n)
	}
	for _, m := range c.Machines {
		all, err := batches(ctx, m, most, c.Patches)
		if err != nil {
			return err
		}
		round := nanos(math.Round(m.Costs.Round(m.Online - 1)))
		for _, n := range c.Clients {
			for _, load := range c.Loads {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := do(&point{m, n, load, all, round}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
