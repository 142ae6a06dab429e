// SPDX-License-Identifier: Apache-2.0

// Package pareto asks which vector of patches to choose: the cheapest that keeps to
// a budget of interrupts on isolated CPUs.
package pareto

import (
	"context"
	_ "embed"
	"slices"

	"github.com/textpoke/textpoke/cpus"
	"github.com/textpoke/textpoke/experiments"
	"github.com/textpoke/textpoke/experiments/internal/modelled"
	"github.com/textpoke/textpoke/poke"
	"github.com/textpoke/textpoke/results"
	"github.com/textpoke/textpoke/sim"
)

// Config says what can be chosen, on which machines, for which budgets. Default of
// Machines: vm-2 with 8 CPUs, jump-label-24, refcount-480, graviton2; of Buffers: 64,
// 128, 170, 256, 512, 1024, 2048, 4096, 8192, 16384 and dynamic.
type Config struct {
	modelled.Setting
	// Budgets are the interrupts a millisecond that an isolated CPU may take. Default:
	// 0, 0.5, 1, 2, 5, 10.
	Budgets []float64
	// Measure is what budgets are about: "mean" over the update, or "burst", the most in
	// one millisecond. Default: mean.
	Measure string
}

//go:embed report.md.tmpl
var prose string

var spec = experiments.Spec[Config, *row]{
	Name:  "pareto",
	Short: "which buffer should I choose? the cheapest under a budget of interrupts on isolated CPUs",
	Examples: []string{
		"pareto --out pareto",
		"pareto --calibration jump-label-24 --budget 0,0.1,1 --format csv",
		"pareto --calibration vm-2@8 --cpus busy=4,isolated=4 --measure burst --budget 1,5,20",
	},
	Prose: prose, Columns: columns, Fields: (*Config).fields, Measure: measure,
}

// Experiment is the question.
var Experiment = spec.Experiment()

func (c *Config) fields() []*experiments.Field {
	return append(c.Fields("vm-2@8,jump-label-24,refcount-480,graviton2",
		"64,128,170,256,512,1024,2048,4096,8192,16384,dynamic"),
		experiments.Rates(&c.Budgets, "budget", "0,0.5,1,2,5,10",
			"`list` of budgets: interrupts a millisecond that an isolated CPU may take"),
		experiments.One(&c.Measure,
			"measure", mean, "what budgets are about: `mean` over the update, or burst, the most in one millisecond",
			experiments.OneOf([]string{mean, burst})))
}

// The protocols that queue in a vector.
const (
	withInterrupts = "breakpoint"
	withDeferral   = "breakpoint-lazy"
)

// row is a budget on one machine.
type row struct {
	Machine experiments.Machine
	roles   []cpus.Role
	Budget  float64
	measure string
	choice  *choice // nil: none keeps to it
	nearest *choice // of those that are cheaper and do not, the one that takes least; nil if there is none
}

// columns are those of the table.
var columns = slices.Concat(results.Columns[*row]{
	{Name: "calibration", Doc: "machine that times are modelled of",
		Cell: func(r *row) any { return r.Machine.Name }},
	{Name: "cpus", Doc: "CPUs by role", Cell: func(r *row) any { return cpus.FormatRoles(r.roles) }},
	{Name: "budget_per_ms", Kind: results.Number, Doc: "interrupts a millisecond that an isolated CPU may take",
		Cell: func(r *row) any { return r.Budget }},
	{Name: "measure", Detail: true, Doc: "mean over the update, or the most in one millisecond",
		Cell: func(r *row) any { return r.measure }},
}, results.Columns[*row]{
	{Name: "protocol", Doc: "the choice; empty where none keeps to the budget",
		Cell: func(r *row) any { return r.choice.Protocol }},
	{Name: "buffer", Doc: "its slots; empty where nothing is queued",
		Cell: func(r *row) any { return r.choice.slots() }},
	{Name: "taken_per_ms", Kind: results.Number,
		Doc:  "interrupts a millisecond that take an isolated CPU out of user space, modelled",
		Cell: func(r *row) any { return r.choice.taken }},
	{Name: "ipis_isolated_max", Kind: results.Integer, Detail: true,
		Doc:  "most interrupts that an isolated CPU takes in the update, in the kernel too",
		Cell: func(r *row) any { return r.choice.IsolatedMax }},
	{Name: "rounds", Kind: results.Integer, Doc: "requests to all other CPUs to synchronise",
		Cell: func(r *row) any { return r.choice.Rounds }},
	{Name: "buffer_bytes", Kind: results.Integer, Detail: true, Doc: "size of the vector",
		Cell: func(r *row) any { return r.choice.of(r.choice.BufferBytes) }},
	{Name: "buffer_pages", Kind: results.Integer, Doc: "size of the vector in pages of 4096 bytes",
		Cell: func(r *row) any { return r.choice.of(r.choice.BufferPages) }},
	{Name: "update_ns", Kind: results.Integer, Doc: "from the first verification to the last answer, modelled",
		Cell: func(r *row) any { return int64(r.choice.Modelled.Update) }},
	{Name: "update_range_low_ns", Kind: results.Number,
		Doc:  "lower end of it, over the intervals of the calibration's quantities",
		Cell: func(r *row) any { return r.choice.end(func(s *sim.Ranges) float64 { return s.Update.Low }) }},
	{Name: "update_range_high_ns", Kind: results.Number, Doc: "and its upper end",
		Cell: func(r *row) any { return r.choice.end(func(s *sim.Ranges) float64 { return s.Update.High }) }},
	{Name: "exposure_ns", Kind: results.Integer, Detail: true,
		Doc:  "mean time that a site held a breakpoint, modelled; empty where there is none",
		Cell: func(r *row) any { return r.choice.of(int64(r.choice.Modelled.Exposure)) }},
	{Name: "exposure_range_low_ns", Kind: results.Number, Detail: true, Doc: "lower end of it", Cell: func(r *row) any {
		return r.choice.of(r.choice.end(func(s *sim.Ranges) float64 { return s.Exposure.Low }))
	}},
	{Name: "exposure_range_high_ns", Kind: results.Number, Detail: true, Doc: "and its upper end", Cell: func(r *row) any {
		return r.choice.of(r.choice.end(func(s *sim.Ranges) float64 { return s.Exposure.High }))
	}},
	{Name: "entry_ns", Kind: results.Number,
		Doc:  "what each entry of an isolated CPU into the kernel takes longer, for ever, modelled",
		Cell: func(r *row) any { return r.choice.standing }},
	{Name: "entry_range_low_ns", Kind: results.Number, Detail: true,
		Doc: "lower end of it: the calibration's interval", Cell: func(r *row) any {
			low, _ := r.choice.entry()
			return low
		}},
	{Name: "entry_range_high_ns", Kind: results.Number, Detail: true, Doc: "and its upper end", Cell: func(r *row) any {
		_, high := r.choice.entry()
		return high
	}},
}.When(func(r *row) bool { return r.choice != nil }), results.Columns[*row]{
	{Name: "cheaper_protocol", Detail: true, Doc: "of all that are cheaper, the choice that takes least",
		Cell: func(r *row) any { return r.nearest.Protocol }},
	{Name: "cheaper_buffer", Doc: "its slots", Cell: func(r *row) any { return r.nearest.slots() }},
	{Name: "cheaper_per_ms", Kind: results.Number, Doc: "what that would take: more than the budget",
		Cell: func(r *row) any { return r.nearest.taken }},
}.When(func(r *row) bool { return r.nearest != nil }))

func measure(ctx context.Context, s *experiments.Study[Config, *row]) (*experiments.Findings, error) {
	c := &s.Config
	s.Asked = len(c.Machines) * len(c.Budgets)
	a := &answer{Study: s}
	for _, m := range c.Machines {
		choices, err := c.choices(ctx, s.Lab, m)
		if err != nil { // the cheapest is not known before all are
			return a.findings(), err
		}
		l := &ladder{m, choices}
		a.Done = append(a.Done, l)
		for _, r := range l.rows(c.Budgets) {
			r.measure = c.Measure
			if err := s.Add(r); err != nil {
				return a.findings(), err
			}
		}
	}
	return a.findings(), nil
}

// protocols are what there is to choose from on an instruction set: what it does by
// itself where that queues nothing, and vectors.
func protocols(native *poke.Protocol) []string {
	if native.Batching == poke.Buffered {
		return []string{withInterrupts, withDeferral}
	}
	return []string{poke.Native, withInterrupts, withDeferral}
}
