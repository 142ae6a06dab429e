// SPDX-License-Identifier: Apache-2.0

// Package isolation asks what it saves and costs to leave isolated CPUs in user space
// alone, and to let them catch up when they next enter the kernel.
package isolation

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/kernels/published"
	"github.com/textpoke/textpoke/results"
)

// Config says which hours pass on which machines.
type Config struct {
	// Machines are the calibrations that times are modelled of. Default: e5-2699,
	// e7-8890, gold-6248.
	Machines []experiments.Machine
	// Hours is how much virtual time passes, in hours, above 0 and up to a year. Default:
	// 6, as long as the published interrupts were counted.
	Hours float64
	// Isolated is the number of isolated CPUs of each machine. Default: as many as the
	// published interrupts are spread over.
	Isolated int
	// Sites is the number of sites that each update changes, 1 to 256, which is one batch.
	// Default: 4.
	Sites int
	// Updates are rates, in updates an hour, beside the one that is fitted. Default: 1,
	// 60.
	Updates []float64
	// Entries are rates of entries into the kernel of each isolated CPU, a second.
	// Default: 0.01, 0.1, 1, 10, 100, 1000, 10000, 100000.
	Entries []float64
	// Published is a file in place of the published figures.
	Published string
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "isolation",
	Short: "what does deferral save and cost? interrupts of isolated CPUs over hours, against dearer entries",
	Examples: []string{
		"isolation --out isolation",
		"isolation --calibration gold-6248 --isolated 60 --updates 600 --entries 10,1000 --hours 1",
	},
	Prose: prose, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return []*experiments.Field{
		experiments.Machines(&c.Machines, "e5-2699,e7-8890,gold-6248"),
		experiments.One(&c.Hours, "hours", fmt.Sprint(publishedHours), "`hours` of virtual time",
			experiments.Number("hours above 0, a year at most", func(v float64) bool { return v > 0 && v <= 24*365 })),
		experiments.Count(
			&c.Isolated,
			"isolated",
			0,
			"`number` of isolated CPUs of each machine (default: as many as the published interrupts are spread over)",
			0,
			cpus.MaxCPUs,
		),
		experiments.Count(&c.Sites, "sites", 4, "`number` of sites that each update changes", 1, 256),
		experiments.Rates(&c.Updates, "updates", "1,60", "`list` of updates an hour, beside the rate that is fitted"),
		experiments.Rates(&c.Entries, "entries", "0.01,0.1,1,10,100,1000,10000,100000",
			"`list` of entries into the kernel a second of each isolated CPU"),
		experiments.File(&c.Published, "published",
			"`file` in place of the published figures: CSV with measurement, value, unit, source"),
	}
}

// publishedHours is how long the published interrupts were counted.
const publishedHours = 6

var isLazy = func(r *row) bool { return r.lazy }

var columns = slices.Concat(results.Columns[*row]{
	{Name: "calibration", Doc: "machine that times are modelled of",
		Cell: func(r *row) any { return r.Machine.Name }},
	{Name: "seed", Kind: results.Integer,
		Detail: true, Doc: "of every random choice", Cell: func(r *row) any { return r.seed }},
	{Name: "revision", Detail: true, Doc: "of the program", Cell: func(r *row) any { return r.revision }},
	{Name: "arch", Detail: true, Doc: "instruction set", Cell: func(r *row) any { return r.Machine.Arch }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r *row) any { return cpus.FormatRoles(r.roles) }},
	{Name: "protocol", Doc: "breakpoint interrupts everybody, breakpoint-lazy leaves out who is in user space",
		Cell: func(r *row) any { return r.protocol() }},
	{Name: "hours", Kind: results.Number,
		Detail: true, Doc: "virtual time", Cell: func(r *row) any { return r.hours }},
	{Name: "updates_per_hour", Kind: results.Number, Doc: "times that somebody switches something",
		Cell: func(r *row) any { return r.updates }},
	{Name: "fitted", Kind: results.Boolean,
		Detail: true, Doc: "that rate is fitted to the published number of interrupts",
		Cell: func(r *row) any { return r.fitted }},
	{Name: "entries_per_s", Kind: results.Number,
		Doc:  "entries into the kernel of each isolated CPU; makes no difference where everybody is interrupted",
		Cell: func(r *row) any { return results.If(r.lazy, r.entries) }},
	{Name: "updates", Kind: results.Integer,
		Detail: true, Doc: "in all that time", Cell: func(r *row) any { return r.count }},
	{Name: "rounds", Kind: results.Integer,
		Doc: "requests to all other CPUs to synchronise", Cell: func(r *row) any { return r.rounds }},
	{Name: "ipis_isolated", Kind: results.Integer,
		Doc: "interrupts that all isolated CPUs took", Cell: func(r *row) any { return r.IPIs }},
	{Name: "ipis_isolated_max", Kind: results.Integer,
		Doc: "most that one took", Cell: func(r *row) any { return r.ipisMax }},
}, results.Columns[*row]{
	{Name: "deferred", Kind: results.Integer,
		Doc: "interrupts that were saved", Cell: func(r *row) any { return r.deferred }},
	{Name: "catch_ups", Kind: results.Integer, Doc: "synchronisations at entry that made up for them",
		Cell: func(r *row) any { return r.catchUps }},
	{Name: "rounds_per_catch_up", Kind: results.Number, Doc: "rounds that one of them made up for, mean",
		Cell: func(r *row) any { return results.If(r.catchUps > 0, r.coalesced()) }},
	{Name: "found_in_kernel", Kind: results.Number,
		Doc:  "share of rounds that found an isolated CPU in the kernel, and interrupted it",
		Cell: func(r *row) any { return r.found() }},
	{Name: "found_expected", Kind: results.Number,
		Doc:  "share of its time that it is there: stays/(1+stays), with stays = entries a second x their length",
		Cell: func(r *row) any { return r.expected() }},
}.When(isLazy), results.Columns[*row]{
	{Name: "burst_max", Kind: results.Integer,
		Detail: true, Doc: "most interrupts that an isolated CPU took in one millisecond",
		Cell: func(r *row) any { return r.burst }},
	{Name: "quiet_ns", Kind: results.Integer,
		Doc:  "longest time without an interrupt, of the isolated CPU where it is shortest",
		Cell: func(r *row) any { return int64(r.quiet) }},
	{Name: "stolen_ns_per_hour", Kind: results.Number,
		Doc:  "time taken from an isolated CPU by interrupts, traps and catching up, mean, modelled",
		Cell: func(r *row) any { return r.stolen }},
	{Name: "stolen_range_low_ns_per_hour", Kind: results.Number, Detail: true,
		Doc: "lower end of it: 95 % of draws of the calibration's quantities are within", Cell: func(r *row) any {
			return r.spread.stolen.Low
		}},
	{Name: "stolen_range_high_ns_per_hour", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *row) any { return r.spread.stolen.High }},
}, results.Columns[*row]{
	{Name: "saved_ns_per_hour", Kind: results.Number, Doc: "what deferral saves of it, modelled",
		Cell: func(r *row) any { return r.saved }},
	{Name: "saved_range_low_ns_per_hour", Kind: results.Number, Detail: true, Doc: "lower end of it",
		Cell: func(r *row) any { return r.spread.saved.Low }},
	{Name: "saved_range_high_ns_per_hour", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *row) any { return r.spread.saved.High }},
	{Name: "entries_ns_per_hour", Kind: results.Number, Doc: "what its dearer entries cost, modelled",
		Cell: func(r *row) any { return r.dearer() }},
	{Name: "entries_range_low_ns_per_hour", Kind: results.Number, Detail: true, Doc: "lower end of it",
		Cell: func(r *row) any { return r.spread.dearer.Low }},
	{Name: "entries_range_high_ns_per_hour", Kind: results.Number, Detail: true, Doc: "and its upper end",
		Cell: func(r *row) any { return r.spread.dearer.High }},
	{Name: "break_even_entries_per_s", Kind: results.Number, Doc: "entries at which both would be equal",
		Cell: func(r *row) any { return r.even() }},
}.When(isLazy))

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

// Rate is how many updates an hour, of three rounds each, interrupt each CPU as often.
func (f *figures) Rate() float64 { return f.Each.Value / roundsPerUpdate / publishedHours }

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
		if !r.lazy {
			everybody = r
		}
		r.saved = everybody.stolen - r.stolen
		r.ranges(everybody)
		return r, nil
	})
	return &experiments.Findings{Report: a, Pictures: []experiments.Picture{{Picture: a.chart().Picture()}}}, err
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

// points are all combinations; each rate begins with rounds that interrupt everybody.
func (c *Config) points(fitted float64) (out []*row) {
	rates := append([]float64{fitted}, c.Updates...)
	slices.Sort(rates)
	for _, m := range c.Machines {
		roles := m.Busy()
		for i := len(roles) - c.Isolated; i < len(roles); i++ {
			roles[i] = cpus.Isolated
		}
		for _, u := range slices.Compact(rates) {
			p := row{Machine: m, roles: roles, hours: c.Hours, updates: u, fitted: u == fitted}
			out = append(out, &p)
			for _, e := range c.Entries {
				q := p
				q.lazy, q.entries = true, e
				out = append(out, &q)
			}
		}
	}
	return out
}
