// SPDX-License-Identifier: Apache-2.0

// Package isolation asks what it saves and costs to leave isolated CPUs in user space
// alone, and to let them catch up when they next enter the kernel.
package isolation

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
)

// Config says which hours pass on which machines.
// Its fields are the flags of isolation.experiment.
type Config struct {
	Machines  []experiments.Machine
	Hours     float64
	Isolated  int
	Sites     int       // of an update, which is one batch
	Updates   []float64 // an hour
	Entries   []float64 // a second
	Published string
}

//go:embed isolation.experiment
var declared string

// Experiment is the question.
var Experiment = (&experiments.Spec[Config, *row]{
	Form: declared, Cells: cells, Fields: (*Config).fields, Measure: measure,
}).Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.One(&c.Hours, "hours", fmt.Sprint(publishedHours), "`hours` of virtual time",
			experiments.Number("hours above 0, a year at most", func(v float64) bool { return v > 0 && v <= 24*365 })),
	}
}

// publishedHours is how long the published interrupts were counted.
const publishedHours = 6

// cells are those that no field and no method is.
var cells = map[string]func(*row) any{
	"cpus":                     func(r *row) any { return cpus.FormatRoles(r.roles) },
	"protocol":                 func(r *row) any { return r.protocol() },
	"entries_per_s":            func(r *row) any { return results.If(r.Lazy, r.entries) },
	"rounds_per_catch_up":      func(r *row) any { return results.If(r.catchUps > 0, r.coalesced()) },
	"found_in_kernel":          func(r *row) any { return r.found() },
	"found_expected":           func(r *row) any { return r.expected() },
	"entries_ns_per_hour":      func(r *row) any { return r.dearer() },
	"break_even_entries_per_s": func(r *row) any { return r.even() },
}

// figures is what was published, as far as the experiment uses it.
type figures struct {
	all []published.Isolated
	// interrupts in publishedHours: of all, of each isolated CPU, of all with deferral
	total, Each, left   published.Isolated
	haveTotal, haveEach bool
}

// read finds the figures by what they measure.
func (f *figures) read(file string) (err error) {
	if f.all, err = published.Isolation.Read(file); err != nil {
		return err
	}
	for _, m := range f.all {
		switch {
		case !strings.HasPrefix(m.Measurement, "IPIs in 6 h"):
		case strings.Contains(m.Measurement, "with deferral"):
			f.left = m
		case strings.Contains(m.Measurement, "per isolated CPU"):
			f.Each, f.haveEach = m, m.Value > 0
		default:
			f.total, f.haveTotal = m, m.Value > 0
		}
	}
	if !f.haveTotal || !f.haveEach {
		return fmt.Errorf(
			"published figures: neither rates nor machines follow without IPIs in 6 h, of all and per isolated CPU, above 0",
		)
	}
	return nil
}

// Isolated is how many isolated CPUs the interrupts were spread over.
func (f *figures) Isolated() int { return int(f.total.Value/f.Each.Value + 0.5) }

// Rate is how many updates an hour, of one batch each, interrupt each CPU as often.
func (f *figures) Rate() float64 {
	return f.Each.Value / float64(poke.RoundsPerBatch()) / publishedHours
}

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	a := &answer{Study: s}
	if err := a.figures.read(c.Published); err != nil {
		return nil, err
	}
	if c.Isolated == 0 {
		c.Isolated = a.Isolated()
	}
	if err := c.check(a.Rate()); err != nil {
		return nil, err
	}
	var everybody *row // the last row that interrupts everybody: what deferral is held against
	err := experiments.Each(ctx, s, c.points(a.Rate()), func(r *row) (*row, error) {
		if err := r.pass(ctx, s.Lab, c.Sites); err != nil {
			return nil, err
		}
		if !r.Lazy {
			everybody = r
		}
		r.saved = everybody.stolen - r.stolen
		r.ranges(everybody)
		return r, nil
	})
	return &experiments.Findings{Report: a}, err
}

// maxUpdates is what a few seconds are enough for.
const maxUpdates = 100_000

// check says what cannot be asked.
func (c *Config) check(fitted float64) error {
	for _, u := range append(slices.Clone(c.Updates), fitted) {
		if n := u * c.Hours; n > maxUpdates || n < 0.5 {
			return fmt.Errorf("%g updates an hour for %g hours are %.0f: want 1 to %d", u, c.Hours, n, maxUpdates)
		}
	}
	for _, m := range c.Machines {
		if c.Isolated >= m.Online {
			return fmt.Errorf("--isolated %d: %s has %d CPUs, and one must be left for the patcher", c.Isolated, m, m.Online)
		}
	}
	return nil
}

// away is how far a rate of entries is from the calibration's, in orders of magnitude.
func away(m experiments.Machine, entries float64) float64 {
	return math.Abs(math.Log((entries + 1e-9) / (m.Costs.Entries + 1e-9)))
}

// points are all combinations; each rate begins with rounds that interrupt everybody.
func (c *Config) points(fitted float64) (out []*row) {
	rates := append([]float64{fitted}, c.Updates...)
	slices.Sort(rates)
	for i, m := range c.Machines {
		roles := m.Busy()
		for cpu := len(roles) - c.Isolated; cpu < len(roles); cpu++ {
			roles[cpu] = cpus.Isolated
		}
		for _, u := range slices.Compact(rates) {
			p := row{Machine: m, roles: roles, hours: c.Hours, updates: u, fitted: u == fitted, first: i == 0}
			out = append(out, &p)
			usual := slices.MinFunc(c.Entries, func(a, b float64) int { return cmp.Compare(away(m, a), away(m, b)) })
			for _, e := range c.Entries {
				q := p
				q.Lazy, q.entries, q.Usual = true, e, e == usual
				out = append(out, &q)
			}
		}
	}
	return out
}
